import { setImmediate } from "node:timers/promises";
import type { Calls, Told, WindowOfCalls } from "./callers.ts";
import { Pipeline } from "./pipeline.ts";
import type { Load } from "./wrk.ts";

/** For calls that come at random; those that wait for each other need one. */
const CONNECTIONS = 16;
/** A service that cannot follow is not buried deeper. */
const OPEN_MAX = 5_000;
const REST_MS = 0.02;
const nothing = new Int32Array(new SharedArrayBuffer(4));

process.on("message", (window: WindowOfCalls) => {
  void run(window)
    .catch((error): Told => ({ failure: String(error) }))
    .then((told) => process.send!(told));
});
process.once("disconnect", () => process.exit());

async function run({ url, rests, seconds, calls }: WindowOfCalls): Promise<readonly Load[]> {
  const kinds = await Promise.all(calls.map((kind) => Kind.open(url, kind)));
  const startedAt = performance.now();
  const now = () => (performance.now() - startedAt) / 1_000;
  try {
    let elapsed = 0;
    while (elapsed < seconds && !kinds.some((kind) => kind.isThrough)) {
      for (const kind of kinds) kind.send(elapsed);
      await setImmediate();
      if (rests) Atomics.wait(nothing, 0, 0, REST_MS);
      elapsed = now();
    }
    await Promise.all(kinds.map((kind) => kind.answered));
    return kinds.map((kind) => kind.load(elapsed));
  } finally {
    for (const kind of kinds) kind.close();
  }
}

/** Calls of one kind in one window. */
class Kind {
  readonly #calls: Calls;
  readonly #connections: readonly Pipeline[];
  /** When the next one comes, in seconds since the window began. */
  #due = 0;
  #sent = 0;
  #open = 0;
  #refused = 0;
  /** Milliseconds from due to answered. */
  readonly #latencies: number[] = [];
  #last: Promise<unknown> = Promise.resolve();

  static async open(url: string, calls: Calls): Promise<Kind> {
    const count = calls.perSecond === undefined ? 1 : CONNECTIONS;
    return new Kind(calls, await Promise.all(Array.from({ length: count }, () => Pipeline.open(url, calls.headers))));
  }

  private constructor(calls: Calls, connections: readonly Pipeline[]) {
    this.#calls = calls;
    this.#connections = connections;
    if (calls.perSecond !== undefined) this.#due = this.#interval(calls.perSecond);
  }

  /** Whether calls that come one after the other have all been answered. */
  get isThrough(): boolean {
    return this.#calls.perSecond === undefined && this.#open === 0 && this.#sent === this.#calls.bodies.length;
  }

  get answered(): Promise<unknown> {
    return this.#last;
  }

  /** Sends what is due. */
  send(elapsed: number): void {
    const { perSecond, bodies } = this.#calls;
    if (perSecond === undefined) {
      if (this.#open === 0 && this.#sent < bodies.length) this.#post(performance.now());
      return;
    }
    for (; this.#due <= elapsed; this.#due += this.#interval(perSecond)) {
      this.#post(performance.now() - (elapsed - this.#due) * 1_000);
    }
  }

  load(seconds: number): Load {
    const sorted = this.#latencies.sort((a, b) => a - b);
    const percentile = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
    const [medianMs, p99Ms] = [percentile(0.5), percentile(0.99)];
    return { requests: sorted.length, seconds, refused: this.#refused, medianMs, p99Ms };
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  #interval(perSecond: number): number {
    return -Math.log(1 - Math.random()) / perSecond;
  }

  #post(dueAt: number): void {
    if (this.#open > OPEN_MAX) throw new Error(`${this.#open} calls are not answered`);
    const { path, bodies } = this.#calls;
    const connection = this.#connections[this.#sent % this.#connections.length]!;
    this.#open++;
    const before = this.#last;
    this.#last = connection
      .post(path, bodies[this.#sent++ % bodies.length]!)
      .then((status) => {
        this.#open--;
        if (status !== 200) this.#refused++;
        this.#latencies.push(performance.now() - dueAt);
      })
      .then(() => before);
  }
}
