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
  /** What the figures are of. */
  title: string;
  /** By what they are called; the others are told as parts of the first. */
  subjects: Readonly<Record<string, ServerUnderTest>>;
  wrk: Wrk;
  /** How often each is measured, and for how long. */
  rounds: number;
  seconds: number;
}

/** Gives the same load to several servers in turn, for windows of a few seconds, and prints what they carried. */
export async function compare({ title, subjects, wrk, rounds, seconds }: Compared): Promise<void> {
  const named = Object.entries(subjects);
  const windows = named.map((): Window[] => []);
  for (const [, subject] of named) await measure(subject, wrk, WARM_UP_SECONDS);
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, subject]] of named.entries()) windows[i]!.push(await measure(subject, wrk, seconds));
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

async function measure(subject: ServerUnderTest, wrk: Wrk, length: number): Promise<Window> {
  const before = await subject.cpuMs();
  const load = await wrk.run(subject.url, length);
  const used = (await subject.cpuMs()) - before;
  return { rate: load.requests / load.seconds, cpu: (used * 1_000) / load.requests };
}
