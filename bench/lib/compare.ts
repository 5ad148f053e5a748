import type { ServerUnderTest } from "./server-under-test.ts";
import { spread, writeSpread } from "./statistics.ts";
import type { Wrk } from "./wrk.ts";

const WARM_UP_SECONDS = 3;

interface Window {
  /** Requests per second. */
  rate: number;
  /** Microseconds of CPU per request, of the server's whole process. */
  cpu: number;
}

export interface Compared {
  /** Heading of the figures. */
  title: string;
  /** By name; ratios are relative to the first. */
  servers: Readonly<Record<string, ServerUnderTest>>;
  wrk: Pick<Wrk, "run">;
  /** Number and length of the windows per server. */
  rounds: number;
  seconds: number;
}

/** Measures several servers under the same load, in turn, in windows of a few seconds, and prints the results. */
export async function compare({ title, servers, wrk, rounds, seconds }: Compared): Promise<void> {
  const named = Object.entries(servers);
  const windows = named.map((): Window[] => []);
  for (const [, server] of named) await measure(server, wrk, WARM_UP_SECONDS);
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, server]] of named.entries()) windows[i]!.push(await measure(server, wrk, seconds));
  }

  const column = (values: readonly number[], digits: number) => writeSpread(spread(values), digits).padStart(24);
  const row = (name: string, ...columns: string[]) => console.log(`  ${name.padEnd(24)}${columns.join("")}`);
  console.log(`${title}: median (min–max)`);
  row("", "requests per second".padStart(24), "CPU per request, µs".padStart(24));
  const rates = (of: readonly Window[]) => of.map(({ rate }) => rate);
  const cpus = (of: readonly Window[]) => of.map(({ cpu }) => cpu);
  for (const [i, [name]] of named.entries()) row(name, column(rates(windows[i]!), 0), column(cpus(windows[i]!), 1));
  for (const [i, [name]] of named.entries()) {
    if (i === 0) continue;
    const ratios = (of: typeof rates) => of(windows[i]!).map((value, round) => value / of(windows[0]!)[round]!);
    row(`${name} ÷ ${named[0]![0]}`, column(ratios(rates), 3), column(ratios(cpus), 3));
  }
  console.log();
}

async function measure(server: ServerUnderTest, wrk: Pick<Wrk, "run">, length: number): Promise<Window> {
  const before = await server.cpuMs();
  const load = await wrk.run(server.url, length);
  const used = (await server.cpuMs()) - before;
  return { rate: load.requests / load.seconds, cpu: (used * 1_000) / load.requests };
}
