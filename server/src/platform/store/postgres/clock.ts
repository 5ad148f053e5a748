import { sql as raw } from "kysely";

/** PostgreSQL's own clock in SQL, in milliseconds since the epoch. */
export const POSTGRES_NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

/** PostgreSQL's own clock, as an instant. */
export const postgresNow = raw.raw<number>(POSTGRES_NOW);
