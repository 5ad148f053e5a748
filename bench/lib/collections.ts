import { constants } from "node:perf_hooks";

/** A pause of one thread for a collection of garbage, in milliseconds by the clock. `kind`: a constant of `node:perf_hooks`. */
export interface Collection {
  readonly kind: number;
  readonly ms: number;
}

const kinds = [
  ["scavenges", constants.NODE_PERFORMANCE_GC_MINOR],
  ["steps of marking", constants.NODE_PERFORMANCE_GC_INCREMENTAL],
  ["full collections", constants.NODE_PERFORMANCE_GC_MAJOR],
  ["weak callbacks", constants.NODE_PERFORMANCE_GC_WEAKCB],
] as const;

/** Number, sum and maximum of the pauses of each kind. */
export function pausesByKind(collections: readonly Collection[]) {
  return kinds.map(([name, kind]) => {
    const lengths = collections.filter((one) => one.kind === kind).map(({ ms }) => ms);
    const longest = lengths.reduce((most, ms) => Math.max(most, ms), 0);
    return { name, count: lengths.length, ms: lengths.reduce((sum, ms) => sum + ms, 0), longest };
  });
}
