import type { ServerUnderTest } from "./server-under-test.ts";
import type { Load, Wrk } from "./wrk.ts";

const MIB = 2 ** 20;
/** Number of windows of each server, and their length. */
const WINDOWS = 12;
const SECONDS = 5;

export interface Cold {
  /** Heading of the figures. */
  title: string;
  /** Start a server each; measured from the start of its process. */
  bare(): Promise<ServerUnderTest>;
  latchkey(): Promise<ServerUnderTest>;
  wrk: Wrk;
}

/**
 * Measures servers in the state in which users meet them: just started, with all threads on one core. The windows of the
 * two servers alternate, so a window of one is the pause of the other.
 */
export async function measureCold({ title, bare, latchkey, wrk }: Cold): Promise<void> {
  console.log(`${title}: from the start of the process, windows of ${SECONDS} s`);
  console.log(
    `  ${["window", "bare/s", "latchkey/s", "ratio", "p99 ms", "bare's", "ratio", "CPU ratio", "MiB"].map(cell).join("")}`,
  );
  const servers = [await bare(), await latchkey()] as const;
  for (let window = 1; window <= WINDOWS; window++) {
    const [other, own] = [await measure(servers[0], wrk), await measure(servers[1], wrk)];
    const mebibytes = (await servers[1].residentBytes()) / MIB;
    const cells = [
      String(window),
      other.rate.toFixed(0),
      own.rate.toFixed(0),
      (own.rate / other.rate).toFixed(2),
      own.p99Ms.toFixed(1),
      other.p99Ms.toFixed(1),
      (own.p99Ms / other.p99Ms).toFixed(2),
      (own.cpu / other.cpu).toFixed(2),
      mebibytes.toFixed(0),
    ];
    console.log(`  ${cells.map(cell).join("")}`);
  }
  console.log();
}

function cell(text: string): string {
  return text.padStart(11);
}

async function measure(server: ServerUnderTest, wrk: Wrk): Promise<Load & { rate: number; cpu: number }> {
  const before = await server.cpuMs();
  const load = await wrk.run(server.url, SECONDS);
  const used = (await server.cpuMs()) - before;
  return { ...load, rate: load.requests / load.seconds, cpu: used / load.requests };
}
