import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { digest } from "../../../../../engine/src/crypto/digest.ts";
import { insertEvents } from "../../../platform/store/events/events.ts";
import type { EventData } from "../../../platform/store/events/types.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** A workspace has at most one event of failed authentications in this time, from all nodes. */
export const AUTH_FAILURES_INTERVAL: Milliseconds = 600_000;

/** A burst of failed authentications, as it is recorded. */
export type AuthFailures = EventData<"auth.failures"> & { readonly workspaceId: string; readonly at: number };

/** Records bursts, one for each workspace and interval: the id of the event follows from both. */
export function recordAuthFailures(sql: Sql, bursts: readonly AuthFailures[]): Promise<void> {
  const events = bursts.map(({ workspaceId, at, ...data }) => ({
    // Letters and digits only, like every id.
    id: `evt_${digest(["auth.failures", workspaceId, data.since].join("\0")).replaceAll(/[-_]/g, "0")}`,
    workspaceId,
    objectId: workspaceId,
    type: "auth.failures" as const,
    at: at as Instant,
    data,
  }));
  return insertEvents(sql, events);
}
