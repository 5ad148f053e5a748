import { sql } from "kysely";
import type { DialectName } from "../src/platform/store/dialect.ts";

/** A select whose column `n` counts from 1, by which one statement inserts many rows. */
export function numbersTo(last: number, dialect: DialectName) {
  return dialect === "postgres"
    ? sql`select n from generate_series(1, ${sql.lit(last)}) as s(n)`
    : sql`with recursive s(n) as (select 1 union all select n + 1 from s where n < ${sql.lit(last)}) select n from s`;
}
