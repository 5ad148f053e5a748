import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { digest } from "../../../../../engine/src/crypto/digest.ts";
import { insertEvents } from "../../../platform/store/events/events.ts";
import type { EventData } from "../../../platform/store/events/types.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** A limit that was exceeded, as it is recorded. */
export type RecordedLimit = EventData<"limit.exceeded"> & {
  readonly workspaceId: string;
  readonly objectId: string;
  /** The counter of the limit. */
  readonly counter: string;
  /** Epoch milliseconds. */
  readonly at: number;
};

/**
 * Records limits that were exceeded, once for each counter and window: the id of the event follows from both. Of limits whose
 * workspace does not exist, none is recorded.
 */
export function recordExceeded(sql: Sql, exceeded: readonly RecordedLimit[]): Promise<void> {
  const events = exceeded.map(({ workspaceId, objectId, counter, at, ...data }) => ({
    // Letters and digits only, like every id.
    id: `evt_${digest([workspaceId, counter, data.duration, data.windowEnd, ...(data.shadow ? ["shadow"] : [])].join("\0")).replaceAll(/[-_]/g, "0")}`,
    workspaceId,
    objectId,
    type: "limit.exceeded" as const,
    at: at as Instant,
    data,
  }));
  return insertEvents(sql, events);
}
