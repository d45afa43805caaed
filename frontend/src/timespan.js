// The stretch of time that all charts show, and the cursor in it.

export class TimeSpan {
  constructor(full) {
    this.full = full;
    this.t0 = full[0];
    this.t1 = full[1];
    this.follows = true; // shows everything, also what is still to come
    this.listeners = new Set();
    this.waiting = false;
  }

  get width() {
    return this.t1 - this.t0;
  }

  /** Tells all charts, once per picture. */
  tell() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const listener of this.listeners) listener();
    });
  }

  show(t0, t1) {
    const [a, b] = this.full;
    const least = Math.max(1e-12 * Math.max(Math.abs(a), Math.abs(b)), 1e-9 * (b - a));
    const width = Math.min(Math.max(t1 - t0, least), b - a || 1);
    this.t0 = Math.min(Math.max(t0, a), b - width);
    this.t1 = this.t0 + width;
    this.follows = width >= (b - a) * (1 - 1e-9);
    this.tell();
  }

  all() {
    this.show(...this.full);
  }

  move(share) {
    this.show(this.t0 + share * this.width, this.t1 + share * this.width);
  }

  zoom(factor, at = (this.t0 + this.t1) / 2) {
    const width = this.width * factor;
    const share = (at - this.t0) / this.width;
    this.show(at - share * width, at + (1 - share) * width);
  }

  /** The run has come further. */
  grow(full) {
    const follows = this.follows;
    this.full = full;
    if (follows) {
      [this.t0, this.t1] = full;
      this.tell();
    }
  }
}
