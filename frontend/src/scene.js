export class Scene {}
