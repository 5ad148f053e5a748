import { sql as raw } from "kysely";

/** PostgreSQL's own clock, as an instant. */
export const postgresNow = raw<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
