import { join } from "node:path";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../engine/src/random/random.ts";
import { Deliveries } from "../../../engine/src/replica/deliveries.ts";
import { type CountReport, partsOf, type ReportTaker } from "../../../engine/src/replica/report.ts";
import { Analytics } from "../features/analytics/analytics.ts";
import { type Batch, cellsOf, readBatch } from "../features/analytics/batch.ts";
import type { KeyUse } from "../features/analytics/recorder.ts";
import type { Rollups } from "../features/analytics/rollups.ts";
import type { Events } from "../log/events.ts";

/** Memory for counts while home is away. Further counts are on disk only. */
const MEMORY_BYTES = 16 * 1024 * 1024;

export interface EdgeCountsOptions {
  clock: Clock;
  random: Random;
  home: ReportTaker;
  /** For the counts that home has not taken. */
  folder: string;
  diskBytesMax: number;
  events: Pick<
    Events,
    | "analyticsBack"
    | "analyticsLost"
    | "analyticsMergeFailed"
    | "analyticsOutage"
    | "analyticsUnreadable"
    | "countsRejected"
  >;
}

/** What the edge decides, counted and reported home: each count once, also if this process is killed in between. */
export class EdgeCounts {
  readonly analytics: Analytics;
  readonly #reports: Reports;

  constructor({ clock, random, home, folder, diskBytesMax, events }: EdgeCountsOptions) {
    const recorderId = newId(random, "rec");
    const reports = new Reports(home, events.countsRejected);
    let useReports = 0;
    this.#reports = reports;
    this.analytics = new Analytics({
      clock,
      recorderId,
      // The log of decisions is home's.
      loggedPerMinute: 0,
      folder: join(folder, "edge"),
      bytesMax: { memory: Math.min(MEMORY_BYTES, diskBytesMax), disk: diskBytesMax },
      rollups: asRollups(reports),
      // Repeated, they change nothing. So they have numbers of their own.
      recordKeyUses: (uses: readonly KeyUse[]) =>
        reports.send({ recorder: `${recorderId}_uses`, sequence: ++useReports, verifications: [], uses }),
      onReachability: (reachable, cause) => (reachable ? events.analyticsBack() : events.analyticsOutage(cause)),
      onLoss: events.analyticsLost,
      onSpoolUnreadable: events.analyticsUnreadable,
      onFailedMerge: events.analyticsMergeFailed,
    });
  }

  /** Verifications that are not counted anywhere. */
  get lost(): number {
    return this.analytics.outbox.counts.lost + this.#reports.lost;
  }

  /** Batches that home has not taken. */
  get waiting(): number {
    return this.analytics.outbox.waiting;
  }
}

/** Reports into which a batch may be divided. Its longest text fits into half of them. */
const PARTS = 64;

/** Sends batches home as reports. What home will never take is lost, and keeps nothing else waiting. */
class Reports {
  readonly #deliveries: Deliveries;
  /** The last report of each recorder that home has judged. A batch that is sent again continues after it. */
  readonly #judged = new Map<string, number>();
  lost = 0;

  constructor(home: ReportTaker, onLoss: (verifications: number, cause: unknown) => void) {
    this.#deliveries = new Deliveries(home, (verifications, cause) => {
      this.lost += verifications;
      onLoss(verifications, cause);
    });
  }

  /** Rejects if a batch must be sent again. Those after one whose parts home fails at are sent meanwhile. */
  async sendBatches(batches: readonly Batch[]): Promise<void> {
    const failures: unknown[] = [];
    for (const batch of batches) failures.push(...(await this.#sendBatch(batch)));
    if (failures.length > 0) throw failures[0];
  }

  /** The failures of parts that must be sent again, and are divided. Rejects at another one. */
  async #sendBatch({ recorder, sequence, keys, verifications }: Batch): Promise<unknown[]> {
    const failures: unknown[] = [];
    const cells = [...cellsOf(keys), ...verifications].map(
      ([minute, , apiId, keyId, identityId, tags, code, count, , latencyUs]) =>
        [minute, apiId, keyId, identityId, tags, code, count, latencyUs] as const,
    );
    // The number of a batch is that of its last report: a part of a batch is never taken for all of it.
    for (const [i, part] of partsOf(cells).entries()) {
      const report = { recorder, sequence: sequence * PARTS + i, verifications: part, uses: [] };
      const judged = this.#judged.get(recorder) ?? 0;
      if (report.sequence <= judged && !this.#deliveries.isDivided(report)) continue;
      try {
        await this.send(report);
        this.#judged.set(recorder, Math.max(judged, report.sequence));
      } catch (error) {
        if (!this.#deliveries.isDivided(report)) throw error;
        failures.push(error);
      }
    }
    return failures;
  }

  send(report: CountReport): Promise<void> {
    return this.#deliveries.deliver(report);
  }
}

/** Home as the store of batches. It answers no queries: those are passed on. */
function asRollups(reports: Reports): Rollups {
  const isHomes = () => {
    throw new Error("Home answers queries of statistics");
  };
  return {
    async write(texts) {
      await reports.sendBatches(texts.map(readBatch));
    },
    merge: async () => false,
    prune: async () => ({ rows: 0, more: false }),
    close: async () => {},
    stats: isHomes,
    counts: isHomes,
    top: isHomes,
    decisions: isHomes,
  };
}
