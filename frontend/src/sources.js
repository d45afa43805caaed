// Where numbers come from: a server, or the page itself. Both give frames: { t, low: [...], high: [...], raw }.

const ARRAYS = { f4: Float32Array, f8: Float64Array, u4: Uint32Array };

/** Reads a frame as cosolve/viewer/frames.py writes it. */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  if (head.parts) {
    for (const [name, kind, count] of head.parts) {
      head[name] = new ARRAYS[kind](buffer, at, count);
      at += 8 * Math.ceil(head[name].byteLength / 8);
    }
    return { ...head, bytes: buffer.byteLength };
  }
  const take = () => {
    const part = new Float64Array(buffer, at, head.count);
    at += 8 * head.count;
    return part;
  };
  const frame = { t: take(), low: [], high: [], raw: head.raw, rows: head.rows };
  for (let k = 0; k < head.signals; k++) {
    frame.low.push(take());
    frame.high.push(head.raw ? frame.low[k] : take());
  }
  return frame;
}

/** Requests of one moment for the same window travel together. */
class Together {
  constructor(fetch) {
    this.fetch = fetch;
    this.waiting = new Map();
  }

  ask(key, ids) {
    return new Promise((resolve, reject) => {
      if (!this.waiting.has(key)) {
        this.waiting.set(key, []);
        setTimeout(() => this.send(key), 0);
      }
      this.waiting.get(key).push({ ids, resolve, reject });
    });
  }

  async send(key) {
    const asked = this.waiting.get(key);
    this.waiting.delete(key);
    const all = [...new Set(asked.flatMap((one) => one.ids))];
    try {
      const frame = await this.fetch(key, all);
      for (const one of asked) {
        const places = one.ids.map((id) => all.indexOf(id));
        one.resolve({ ...frame, low: places.map((k) => frame.low[k]), high: places.map((k) => frame.high[k]) });
      }
    } catch (error) {
      for (const one of asked) one.reject(error);
    }
  }
}

/** A module whose text came with the page, or from the kernel: nothing is loaded from elsewhere. */
export function moduleOf(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return import(address).finally(() => URL.revokeObjectURL(address));
}

/** A server at the address of the page. */
export class Server {
  constructor(base = "") {
    this.base = base;
    this.together = new Together((key, ids) => this.read(`series?${key}&ids=${ids.join(",")}`));
  }

  about() {
    return this.ask("about");
  }

  async read(address) {
    const answer = await fetch(this.base + address);
    if (!answer.ok) {
      const found = await answer.json().catch(() => ({}));
      throw new Error(found.problem ?? `the server answered ${answer.status}`);
    }
    return decode(await answer.arrayBuffer());
  }

  series(result, ids, t0, t1, n) {
    return this.together.ask(`r=${result}&t0=${t0}&t1=${t1}&n=${n}`, ids);
  }

  difference(result, minus, id, t0, t1, n) {
    return this.read(`series?r=${result}&minus=${minus}&ids=${id}&t0=${t0}&t1=${t1}&n=${n}`);
  }

  async ask(address) {
    const answer = await fetch(this.base + address);
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.problem ?? "the server gave no answer");
    return found;
  }

  /** A quantity of a sweep over two parameters, at places of the other dimensions. */
  map(quantity, x, y, at) {
    return this.ask(`map?${new URLSearchParams({ quantity, x, y, at: JSON.stringify(at) })}`);
  }

  /** One run of a sweep. */
  cell(at) {
    return this.ask(`cell?${new URLSearchParams({ at: JSON.stringify(at) })}`);
  }

  /** Times and triangles of a series of fields. */
  mesh(f) {
    return this.read(`mesh?f=${f}`);
  }

  /** One snapshot: a field, and points unless they are those that are here already. */
  field(f, step, field, have) {
    return this.read(`field?f=${f}&step=${step}&field=${field}&have=${have}`);
  }

  /** Between which values a field is. */
  limits(f, field) {
    return this.ask(`limits?f=${f}&field=${field}`);
  }

  /** So many rows of signals, as they are: positions that belong together. */
  sample(result, ids, n) {
    return this.read(`series?sample=1&r=${result}&t0=0&t1=0&n=${n}&ids=${ids.join(",")}`);
  }

  /** A line to a run that goes on: `heard(state)`, `lost()`; gives a function that sends orders. */
  live(heard, lost) {
    const address = new URL(`${this.base}live`, location.href);
    address.protocol = "ws:";
    const socket = new WebSocket(address);
    socket.onmessage = (event) => heard(JSON.parse(event.data));
    socket.onclose = lost;
    return (order) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(order));
  }
}

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;

/**
 * Numbers that lie in the page: { about, frames: [base64, ...] }, one frame with all listed signals per result; `motion`,
 * where bodies move, and `fields`, snapshots of each file with its mesh. What draws those lies in an element of its own.
 */
export class Embedded {
  constructor(held) {
    this.held = held;
    const opened = (frame) => ({ ids: frame.ids, ...decode(bytesOf(frame.data)) });
    this.frames = held.frames.map(opened);
    if (held.motion || held.fields) this.scene = () => moduleOf(JSON.parse(document.querySelector("script.cosolve-scene").textContent));
    if (held.motion) {
      const motion = opened(held.motion);
      this.sample = async (result, ids) => ({ ...motion, low: ids.map((id) => motion.low[motion.ids.indexOf(id)]) });
    }
  }

  async mesh(f) {
    return decode(bytesOf(this.held.fields[f].mesh));
  }

  async field(f, step, field, have) {
    const { at, points, values } = this.held.fields[f];
    const found = field < 0 ? { bytes: 0 } : decode(bytesOf(values[step][field]));
    if (at[step] !== have) found.points = decode(bytesOf(points[at[step]])).points;
    return { ...found, at: at[step] };
  }

  async limits(f, field) {
    return this.held.fields[f].limits[field];
  }

  async about() {
    return this.held.about;
  }

  async series(result, ids) {
    const frame = this.frames[result];
    const places = ids.map((id) => frame.ids.indexOf(id));
    const none = new Float64Array(frame.t.length).fill(NaN);
    const pick = (part) => places.map((k) => (k < 0 ? none : part[k]));
    return { t: frame.t, raw: frame.raw, rows: frame.rows, low: pick(frame.low), high: pick(frame.high), whole: true };
  }
}
