import { type RawBuilder, sql as raw } from "kysely";
import type { Instant } from "../clock/clock.ts";
import type { Sql } from "./store.ts";

/** PostgreSQL's own clock, as an instant. */
export const postgresNow = raw<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/**
 * The current time for deleting old rows. On PostgreSQL it is never later than the database's own time, so that a node
 * whose clock is ahead deletes nothing that other nodes need.
 */
export function pruningTime({ dialect }: Sql, now: Instant): RawBuilder<number> {
  return dialect === "postgres" ? raw<number>`least(${now}::bigint, ${postgresNow})` : raw<number>`${now}`;
}
