import { join } from "node:path";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../engine/src/random/random.ts";
import { Analytics } from "../features/analytics/analytics.ts";
import { cellsOf, readBatch } from "../features/analytics/batch.ts";
import type { KeyUse } from "../features/analytics/recorder.ts";
import type { Rollups } from "../features/analytics/rollups.ts";
import type { Events } from "../log/events.ts";
import type { HttpHome } from "./http-home.ts";

/** Memory for counts while home is away. Further counts are on disk only. */
const MEMORY_BYTES = 16 * 1024 * 1024;
/** Cells of one report. */
const CELLS_MAX = 2_000;

export interface EdgeCountsOptions {
  clock: Clock;
  random: Random;
  home: Pick<HttpHome, "report">;
  /** For the counts that home has not taken. */
  folder: string;
  diskBytesMax: number;
  events: Events;
}

/** Counts what the edge decides, and reports it home: each count once, also if this process is killed in between. */
export function openEdgeCounts({ clock, random, home, folder, diskBytesMax, events }: EdgeCountsOptions): Analytics {
  const recorderId = newId(random, "rec");
  let useReports = 0;
  return new Analytics({
    clock,
    recorderId,
    // The log of decisions is home's.
    loggedPerMinute: 0,
    folder: join(folder, "edge"),
    bytesMax: { memory: Math.min(MEMORY_BYTES, diskBytesMax), disk: diskBytesMax },
    rollups: reports(home),
    // Repeated, they change nothing. So they have numbers of their own.
    recordKeyUses: (uses: readonly KeyUse[]) =>
      home.report({ recorder: `${recorderId}_uses`, sequence: ++useReports, verifications: [], uses }),
    onReachability: (reachable, cause) => (reachable ? events.analyticsBack() : events.analyticsOutage(cause)),
    onLoss: events.analyticsLost,
    onSpoolUnreadable: events.analyticsUnreadable,
    onFailedMerge: events.analyticsMergeFailed,
  });
}

/** Home as the store of batches. It answers no queries: those are passed on. */
function reports(home: Pick<HttpHome, "report">): Rollups {
  const isHomes = () => {
    throw new Error("Home answers queries of statistics");
  };
  return {
    async write(texts) {
      for (const text of texts) {
        const { recorder, sequence, keys, verifications } = readBatch(text);
        const cells = [...cellsOf(keys), ...verifications].map(
          ([minute, , apiId, keyId, identityId, tags, code, count, , latencyUs]) =>
            [minute, apiId, keyId, identityId, tags, code, count, latencyUs] as const,
        );
        // The number of a batch is that of its last report: a part of a batch is never taken for all of it.
        for (let i = 0; i < Math.max(1, cells.length); i += CELLS_MAX) {
          const part = cells.slice(i, i + CELLS_MAX);
          const number = sequence * PARTS + Math.floor(i / CELLS_MAX);
          await home.report({ recorder, sequence: number, verifications: part, uses: [] });
        }
      }
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

/** Reports into which a batch may be divided. */
const PARTS = 64;
