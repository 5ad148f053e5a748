import { sql } from "kysely";

/** A condition that is always true. SQLite needs a `where` before `on conflict`, or it parses `on` as a join condition. */
export const always = sql<boolean>`true`;
