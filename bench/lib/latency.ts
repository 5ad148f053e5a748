import { CALLERS_BUSY, type CallerLoad, Callers, type Calls, successful } from "./callers.ts";
import { type Spread, spread, writeSpread } from "./statistics.ts";

/** A server and the calls that arrive there at random. */
export interface Loaded {
  readonly name: string;
  readonly url: string;
  readonly calls: Calls & { readonly perSecond: number };
}

/** The windows of one server; undefined where it could not keep up, or the callers could not. */
export interface MeasuredLoad extends Loaded {
  readonly windows: (CallerLoad | undefined)[];
  /** Whether the callers could not keep up in one of the others. */
  areCallersBusy: boolean;
}

/** Loads the servers in turn, window by window. A first window of each warms up and has no figures. */
export async function measureInTurn(
  servers: readonly Loaded[],
  { windows, seconds }: { windows: number; seconds: number },
): Promise<MeasuredLoad[]> {
  const callers = servers.map(({ url }) => new Callers(url));
  const measured = servers.map((server): MeasuredLoad => ({ ...server, windows: [], areCallersBusy: false }));
  try {
    for (let window = 0; window <= windows; window++) {
      for (const [i, server] of measured.entries()) {
        const { name, calls, windows } = server;
        const load = await callers[i]!.run(seconds, calls).then(successful, (error: Error) => {
          console.error(`  ${name} at ${Math.round(calls.perSecond)} calls per second: ${error.message}`);
          if (window > 0) server.areCallersBusy ||= error.message === CALLERS_BUSY;
          return undefined;
        });
        if (window > 0) windows.push(load);
      }
    }
  } finally {
    await Promise.all(callers.map((caller) => caller.close()));
  }
  return measured;
}

/** The p99 of the windows in which a server kept up, if these are more than half. */
export function p99Of({ windows }: MeasuredLoad): Spread | undefined {
  return overWindows(windows.map((load) => load?.p99Ms));
}

/** Calls per second, p50, p99 and p99.9 in cells of a table. Beside the p50 is in how many windows the server kept up, if not in all. */
export function latencyCells(load: MeasuredLoad): string[] {
  const { calls, windows } = load;
  const [median = "", ...figures] = (["medianMs", "p99Ms", "p999Ms"] as const).map((figure) =>
    cell(overWindows(windows.map((window) => window?.[figure])), whyNot(load)),
  );
  const kept = windows.filter((window) => window !== undefined).length;
  const share = kept === windows.length ? "" : ` in ${kept} of ${windows.length} windows`;
  return [Math.round(calls.perSecond).toLocaleString("en"), median + share, ...figures];
}

/** Why there are no figures. */
export function whyNot({ areCallersBusy }: MeasuredLoad): string {
  return areCallersBusy ? "more than the callers can send" : "cannot keep up";
}

/** The ratio of the p99 of neighbouring windows of two servers, in a cell of a table. */
export function p99RatioCell(of: MeasuredLoad, to: MeasuredLoad): string {
  const ratios = of.windows.map((load, i) => load && to.windows[i] && load.p99Ms / to.windows[i].p99Ms);
  return cell(overWindows(ratios), whyNot(of));
}

function overWindows(figures: readonly (number | undefined)[]): Spread | undefined {
  const known = figures.filter((figure) => figure !== undefined);
  return known.length > figures.length / 2 ? spread(known) : undefined;
}

function cell(figures: Spread | undefined, otherwise: string): string {
  return figures === undefined ? otherwise : writeSpread(figures, 2);
}
