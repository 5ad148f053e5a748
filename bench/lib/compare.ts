import type { ServerUnderTest } from "./server-under-test.ts";
import { type Spread, spread, writeSpread } from "./statistics.ts";
import type { Wrk } from "./wrk.ts";

const WARM_UP_SECONDS = 3;

interface Window {
  /** Requests per second. */
  rate: number;
  /** Microseconds of CPU per request, of the server's whole process. */
  cpu: number;
}

/** A server, and the CPU time that it has used since its start, in milliseconds. */
interface Measured extends Pick<ServerUnderTest, "url"> {
  cpuMs(): number | Promise<number>;
}

export interface Compared {
  /** Heading of the figures. */
  title: string;
  /** By name; ratios are relative to the first. */
  servers: Readonly<Record<string, Measured>>;
  wrk: Pick<Wrk, "run">;
  /** Number and length of the windows per server. */
  rounds: number;
  seconds: number;
}

/** The figures of one server: requests per second, µs of CPU per request, and the ratios to the first server. */
export interface ComparedServer {
  name: string;
  rate: Spread;
  cpu: Spread;
  rateRatio: Spread;
  cpuRatio: Spread;
}

/** Measures servers under the same load, in turn, in windows of a few seconds. Prints the results and returns them. */
export async function compare({ title, servers, wrk, rounds, seconds }: Compared): Promise<ComparedServer[]> {
  const named = Object.entries(servers);
  const windows = named.map((): Window[] => []);
  for (const [, server] of named) await measure(server, wrk, WARM_UP_SECONDS);
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, server]] of named.entries()) windows[i]!.push(await measure(server, wrk, seconds));
  }

  const results = named.map(([name], i): ComparedServer => {
    const of = (figure: keyof Window) => spread(windows[i]!.map((window) => window[figure]));
    const ratio = (figure: keyof Window) =>
      spread(windows[i]!.map((window, round) => window[figure] / windows[0]![round]![figure]));
    return { name, rate: of("rate"), cpu: of("cpu"), rateRatio: ratio("rate"), cpuRatio: ratio("cpu") };
  });
  const column = (figures: Spread, digits: number) => writeSpread(figures, digits).padStart(24);
  const row = (name: string, ...columns: string[]) => console.log(`  ${name.padEnd(24)}${columns.join("")}`);
  console.log(`${title}: median (min–max)`);
  row("", "requests per second".padStart(24), "CPU per request, µs".padStart(24));
  for (const { name, rate, cpu } of results) row(name, column(rate, 0), column(cpu, 1));
  for (const { name, rateRatio, cpuRatio } of results.slice(1)) {
    row(`${name} ÷ ${results[0]!.name}`, column(rateRatio, 3), column(cpuRatio, 3));
  }
  console.log();
  return results;
}

async function measure(server: Measured, wrk: Pick<Wrk, "run">, length: number): Promise<Window> {
  const before = await server.cpuMs();
  const load = await wrk.run(server.url, length);
  const used = (await server.cpuMs()) - before;
  return { rate: load.requests / load.seconds, cpu: (used * 1_000) / load.requests };
}
