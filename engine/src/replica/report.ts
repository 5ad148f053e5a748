import { ReportRejected } from "./home.ts";

/** The count of one outcome of one key in one minute, as `replica.report` takes it. */
export type CountCell = readonly [
  minute: number,
  apiId: string | null,
  keyId: string | null,
  identityId: string | null,
  /** The tag set as a sorted JSON array; empty without tags. */
  tags: string,
  code: string,
  count: number,
  latencyUs: number,
];

/** A report. Home counts a number of a recorder once. */
export interface CountReport {
  readonly recorder: string;
  readonly sequence: number;
  readonly verifications: readonly CountCell[];
  readonly uses: readonly { readonly keyId: string; readonly at: number }[];
  /** When root keys of callers were last used. */
  readonly rootKeyUses?: readonly { readonly rootKeyId: string; readonly at: number }[];
}

export interface ReportAnswer {
  /** Verifications of the report that home does not count. */
  readonly leftOut?: number;
}

/** Home, as it takes reports. Rejects with `ReportRejected` if it never will, and otherwise if it may take it later. */
export interface ReportTaker {
  report(report: CountReport): Promise<ReportAnswer>;
}

/** What one report may have. Home reads at most a mebibyte of it. */
export const REPORT_MAX = { cells: 2_000, bytes: 768 * 1024 } as const;

/** The longest cell without its tags, and the longest use, as JSON. */
const CELL_BYTES = 192;
export const USE_BYTES = 96;

/** The bytes of a cell with these tags in a report, at most. */
export function bytesOf(tags: string): number {
  return CELL_BYTES + (tags === "" ? 0 : Buffer.byteLength(JSON.stringify(tags)));
}

/** Divides cells into parts that fit into one report each. At least one part. */
export function partsOf(cells: readonly CountCell[]): CountCell[][] {
  let part: CountCell[] = [];
  const parts = [part];
  let bytes = 0;
  for (const cell of cells) {
    const more = bytesOf(cell[4]);
    if (part.length === REPORT_MAX.cells || (part.length > 0 && bytes + more > REPORT_MAX.bytes)) {
      part = [];
      parts.push(part);
      bytes = 0;
    }
    part.push(cell);
    bytes += more;
  }
  return parts;
}

export function verificationsOf(cells: readonly CountCell[]): number {
  return cells.reduce((sum, [, , , , , , count]) => sum + count, 0);
}

/** Verifications that are not counted anywhere, and why. */
export interface Loss {
  readonly verifications: number;
  readonly cause: Error;
}

/**
 * Sends a report. Resolves when home has judged it, with what it has not counted: later reports must not wait for one that
 * home will never take. Rejects if the report must be sent again.
 */
export async function deliver(home: ReportTaker, report: CountReport): Promise<Loss | undefined> {
  try {
    const { leftOut = 0 } = await home.report(report);
    return leftOut > 0 ? { verifications: leftOut, cause: new ReportRejected(LEFT_OUT) } : undefined;
  } catch (cause) {
    if (!(cause instanceof ReportRejected)) throw cause;
    return { verifications: verificationsOf(report.verifications), cause };
  }
}

const LEFT_OUT =
  "The service has left counts out: the root key does not open their API, they are more than a day old, or their keys are erased";
