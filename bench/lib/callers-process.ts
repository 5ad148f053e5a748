import type { Calls, Told, WindowOfCalls } from "./callers.ts";
import { Pipeline } from "./pipeline.ts";
import { atRandomMoments, sharedNow } from "./poisson-arrivals.ts";
import type { Load } from "./wrk.ts";

/** For calls that come at random; those that wait for each other need one. */
const CONNECTIONS = 16;
/** A service that cannot follow is not buried deeper. */
const OPEN_MAX = 5_000;

let over = new AbortController();

process.on("message", (message: WindowOfCalls | "end") => {
  if (message === "end") {
    over.abort();
    return;
  }
  over = new AbortController();
  void run(message)
    .catch((error): Told => ({ failure: String(error) }))
    .then((told) => process.send!(told));
});
process.once("disconnect", () => process.exit());

async function run({ url, seconds, calls }: WindowOfCalls): Promise<Load> {
  const count = calls.perSecond === undefined ? 1 : CONNECTIONS;
  const connections = await Promise.all(Array.from({ length: count }, () => Pipeline.open(url, calls.headers)));
  try {
    return await new Sender(calls, connections).run(seconds, over.signal);
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Sends the calls of one window, and measures them. */
class Sender {
  readonly #calls: Calls;
  readonly #connections: readonly Pipeline[];
  #sent = 0;
  #open = 0;
  #refused = 0;
  #isBuried = false;
  /** Milliseconds from due to answered. */
  readonly #latencies: number[] = [];
  #answered: Promise<unknown> = Promise.resolve();

  constructor(calls: Calls, connections: readonly Pipeline[]) {
    this.#calls = calls;
    this.#connections = connections;
  }

  async run(seconds: number, signal: AbortSignal): Promise<Load> {
    const { perSecond, bodies } = this.#calls;
    const startedAt = sharedNow();
    const elapsed = () => (sharedNow() - startedAt) / 1_000;
    if (perSecond !== undefined) {
      await atRandomMoments({ perSecond, seconds }, signal, (at) => {
        this.#isBuried ||= this.#open > OPEN_MAX;
        if (!this.#isBuried) void this.#post(at);
      });
    } else {
      while (this.#sent < bodies.length && elapsed() < seconds && !signal.aborted) await this.#post(sharedNow());
    }
    const tookSeconds = elapsed();
    if (this.#isBuried) throw new Error(`More than ${OPEN_MAX} calls were not answered`);
    await this.#answered;
    const sorted = this.#latencies.sort((a, b) => a - b);
    const percentile = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
    const [medianMs, p99Ms] = [percentile(0.5), percentile(0.99)];
    return { requests: sorted.length, seconds: tookSeconds, refused: this.#refused, medianMs, p99Ms };
  }

  #post(dueAt: number): Promise<void> {
    const { path, bodies } = this.#calls;
    const connection = this.#connections[this.#sent % this.#connections.length]!;
    this.#open++;
    const answered = connection.post(path, bodies[this.#sent++ % bodies.length]!).then((status) => {
      this.#open--;
      if (status !== 200) this.#refused++;
      this.#latencies.push(sharedNow() - dueAt);
    });
    const before = this.#answered;
    this.#answered = answered.then(() => before);
    return answered;
  }
}
