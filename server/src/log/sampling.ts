/** Lines per kind and interval. */
const LINES_MAX = 10;
const INTERVAL_MS = 60_000;
/** Kinds that are sampled separately, more than there are operations. Further kinds are sampled together. */
const KINDS_MAX = 200;
const OTHER = "other";

interface Kind {
  since: number;
  lines: number;
  suppressed: number;
}

/** Samples frequent log lines: a number of lines per kind and minute. The next line says how many were suppressed. */
export class Sampling {
  readonly #monotonic: () => number;
  readonly #kinds = new Map<string, Kind>();

  /** @param monotonic milliseconds of elapsed time. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Undefined if the line is suppressed. Otherwise the number of suppressed lines of its kind since the last one. */
  admit(name: string): number | undefined {
    const now = this.#monotonic();
    const kindName = this.#kinds.has(name) || this.#kinds.size < KINDS_MAX ? name : OTHER;
    let kind = this.#kinds.get(kindName);
    if (kind === undefined) {
      kind = { since: now, lines: 0, suppressed: 0 };
      this.#kinds.set(kindName, kind);
    } else if (now - kind.since >= INTERVAL_MS) {
      kind.since = now;
      kind.lines = 0;
    }
    if (kind.lines >= LINES_MAX) {
      kind.suppressed++;
      return undefined;
    }
    kind.lines++;
    const { suppressed } = kind;
    kind.suppressed = 0;
    return suppressed;
  }
}
