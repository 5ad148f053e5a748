/** Lines of one kind in one interval. */
const LINES_MAX = 10;
const INTERVAL_MS = 60_000;
/** Kinds that are told apart; further ones count as one. */
const KINDS_MAX = 100;
const OTHER = "other";

interface Kind {
  since: number;
  lines: number;
  suppressed: number;
}

/** Thins out log lines that come in crowds: so many of each kind a minute, and with the next one how many were left out. */
export class Sampling {
  readonly #monotonic: () => number;
  readonly #kinds = new Map<string, Kind>();

  /** @param monotonic milliseconds of elapsed time. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Undefined: leave this line out. Else how many of its kind were left out since the last one. */
  admit(name: string): number | undefined {
    const now = this.#monotonic();
    const known = this.#kinds.has(name) || this.#kinds.size < KINDS_MAX ? name : OTHER;
    let kind = this.#kinds.get(known);
    if (kind === undefined) {
      kind = { since: now, lines: 0, suppressed: 0 };
      this.#kinds.set(known, kind);
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
