import { type RawBuilder, sql as raw } from "kysely";
import type { Instant } from "../clock/clock.ts";
import type { Sql } from "./store.ts";

/** PostgreSQL's own clock, as an instant. */
export const postgresNow = raw<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/**
 * The time by which old rows are deleted. A node whose clock is ahead deletes nothing that others still need: where
 * nodes share a database, no later than that database's own time.
 */
export function pruningTime({ dialect }: Sql, now: Instant): RawBuilder<number> {
  return dialect === "postgres" ? raw<number>`least(${now}::bigint, ${postgresNow})` : raw<number>`${now}`;
}
