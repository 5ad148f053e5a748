import { type Kysely, sql } from "kysely";

/** What nodes last knew of each partition of the counters in a Redis Cluster, as `redis_epochs` has it of one Redis. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const statement = `create table redis_partitions (
       number ${integer} not null primary key,
       epoch ${text} not null,
       lost_at ${integer} not null,
       seen_at ${integer} not null
     )${postgres ? "" : " strict"}`;
  await sql.raw(statement).execute(db);
}
