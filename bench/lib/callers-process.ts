import { CALLERS_BUSY, type CallerLoad, type Calls, type CallWindow, type WindowResult } from "./callers.ts";
import { Pipeline } from "./pipeline.ts";
import { atPoissonArrivals, sharedNow } from "./poisson-arrivals.ts";

/** For calls that arrive at random. Calls that follow each other need one connection. */
const CONNECTIONS = 16;
/** Open calls at which the window fails: the service cannot keep up, or these callers cannot. */
const OPEN_MAX = 5_000;
/** The share of a core from which it is the callers: they read answers late. */
const BUSY_SHARE = 0.9;

let ended = new AbortController();

process.on("message", (message: CallWindow | "end") => {
  if (message === "end") {
    ended.abort();
    return;
  }
  ended = new AbortController();
  void run(message)
    .catch((error): WindowResult => ({ failure: String(error) }))
    .then((result) => process.send!(result));
});
process.once("disconnect", () => process.exit());

async function run({ url, seconds, calls }: CallWindow): Promise<CallerLoad> {
  const count = calls.perSecond === undefined ? 1 : CONNECTIONS;
  const connections = await Promise.all(Array.from({ length: count }, () => Pipeline.open(url, calls.headers)));
  try {
    return await new Sender(calls, connections).run(seconds, ended.signal);
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Sends the calls of one window and measures them. */
class Sender {
  readonly #calls: Calls;
  readonly #connections: readonly Pipeline[];
  #sent = 0;
  #open = 0;
  #rejected = 0;
  /** Why it sends no more. */
  #failure: string | undefined;
  /** Milliseconds from due to answered. */
  readonly #latencies: number[] = [];
  #answered: Promise<unknown> = Promise.resolve();

  constructor(calls: Calls, connections: readonly Pipeline[]) {
    this.#calls = calls;
    this.#connections = connections;
  }

  async run(seconds: number, signal: AbortSignal): Promise<CallerLoad> {
    const { perSecond, bodies } = this.#calls;
    const startedAt = sharedNow();
    const elapsed = () => (sharedNow() - startedAt) / 1_000;
    const usedBefore = process.cpuUsage();
    const busyShare = () => {
      const { user, system } = process.cpuUsage(usedBefore);
      return (user + system) / 1e6 / elapsed();
    };
    if (perSecond !== undefined) {
      await atPoissonArrivals({ perSecond, seconds }, signal, (at) => {
        if (this.#open > OPEN_MAX) {
          this.#failure ??= busyShare() < BUSY_SHARE ? `More than ${OPEN_MAX} calls were not answered` : CALLERS_BUSY;
        }
        if (this.#failure === undefined) void this.#post(at);
      });
    } else {
      while (this.#sent < bodies.length && elapsed() < seconds && !signal.aborted) await this.#post(sharedNow());
    }
    const tookSeconds = elapsed();
    if (this.#failure !== undefined) throw new Error(this.#failure);
    await this.#answered;
    const sorted = this.#latencies.sort((a, b) => a - b);
    const percentile = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
    const [medianMs, p99Ms, p999Ms] = [percentile(0.5), percentile(0.99), percentile(0.999)];
    return { requests: sorted.length, seconds: tookSeconds, rejected: this.#rejected, medianMs, p99Ms, p999Ms };
  }

  #post(dueAt: number): Promise<void> {
    const { path, bodies } = this.#calls;
    const connection = this.#connections[this.#sent % this.#connections.length]!;
    this.#open++;
    const answered = connection.post(path, bodies[this.#sent++ % bodies.length]!).then((status) => {
      this.#open--;
      if (status !== 200) this.#rejected++;
      this.#latencies.push(sharedNow() - dueAt);
    });
    const before = this.#answered;
    this.#answered = answered.then(() => before);
    return answered;
  }
}
