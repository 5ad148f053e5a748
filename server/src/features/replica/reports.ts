import type { Clock } from "../../../../engine/src/clock/clock.ts";
import { digest } from "../../../../engine/src/crypto/digest.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { batchText, EDGE_RECORDER, type VerificationCell } from "../analytics/batch.ts";
import type { KeyUse } from "../analytics/recorder.ts";
import { RecorderNames } from "./recorder-names.ts";

/** The counts of an edge that were checked. */
export interface AcceptedReport {
  readonly workspaceId: string;
  readonly rootKeyId: string;
  /** The edge's name for what numbers its reports. */
  readonly recorder: string;
  readonly sequence: number;
  readonly verifications: readonly VerificationCell[];
  readonly uses: readonly KeyUse[];
}

export interface ReplicaReportsOptions {
  clock: Pick<Clock, "monotonic">;
  /** Adds batches to the store, each once; resolves after the commit. */
  write(batches: readonly string[]): Promise<void>;
  /** Takes last uses, which are written later. */
  addUses(uses: readonly KeyUse[]): void;
}

/**
 * Names of recorders of a workspace in an hour. Each process of an edge has one, and each part of a report at which the database
 * fails.
 */
export const RECORDERS_PER_HOUR = 10_000;

/** Reports of one write. A write of this many takes some tenths of a second. */
const REPORTS_PER_WRITE = 16;

interface Waiting {
  readonly text: string;
  readonly done: PromiseWithResolvers<void>;
}

/** Writes the counts of edges. Those that arrive during a write are written together by the next one. */
export class ReplicaReports {
  readonly #options: ReplicaReportsOptions;
  readonly #waiting: Waiting[] = [];
  readonly #names: RecorderNames;
  #writing = false;

  constructor(options: ReplicaReportsOptions) {
    this.#options = options;
    this.#names = new RecorderNames(options.clock, RECORDERS_PER_HOUR);
  }

  /**
   * Resolves when the store has the counts, or had them before. Rejects if it could not take them, and with a problem if the
   * workspace has too many recorders.
   */
  async accept({ verifications, uses, sequence, ...of }: AcceptedReport): Promise<void> {
    if (verifications.length > 0) {
      const recorder = recorderOf(of);
      if (!this.#names.note(of.workspaceId, recorder)) throw tooManyRecorders();
      const text = batchText(
        { recorder, sequence },
        { keys: [], verifications: [JSON.stringify(verifications)], ratelimits: [], decisions: [] },
      );
      const done = Promise.withResolvers<void>();
      this.#waiting.push({ text, done });
      if (!this.#writing) void this.#write();
      await done.promise;
    }
    if (uses.length > 0) this.#options.addUses(uses);
  }

  async #write(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, REPORTS_PER_WRITE);
      try {
        await this.#options.write(some.map(({ text }) => text));
        for (const { done } of some) done.resolve();
      } catch (error) {
        if (some.length === 1 || error instanceof StoreUnavailable) for (const { done } of some) done.reject(error);
        else await this.#writeEach(some);
      }
    }
    this.#writing = false;
  }

  /** One report at which the store fails must not take those of other edges with it. */
  async #writeEach(reports: readonly Waiting[]): Promise<void> {
    for (const { text, done } of reports) await this.#options.write([text]).then(done.resolve, done.reject);
  }
}

function tooManyRecorders(): Problem {
  const detail =
    `Edges of this workspace sent reports under ${RECORDERS_PER_HOUR} names in this hour, which is the maximum. An edge keeps one ` +
    "name for as long as its process runs.";
  return new Problem("workspace_busy", detail, { headers: { "retry-after": "60" } });
}

/** What numbers the reports, in the store. Nobody else can use the numbers of an edge up. */
function recorderOf({ workspaceId, rootKeyId, recorder }: Omit<AcceptedReport, "verifications" | "uses" | "sequence">) {
  return `${EDGE_RECORDER}${digest(`${workspaceId} ${rootKeyId} ${recorder}`)}`;
}
