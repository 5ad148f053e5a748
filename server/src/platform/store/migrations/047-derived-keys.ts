import { type Kysely, sql } from "kysely";

/** Keys that are derived from keys, and whether the holder of a key may derive. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table derived_keys (
       id ${text} not null primary key,
       workspace_id ${text} not null,
       parent_id ${text} not null,
       top_id ${text} not null,
       owner_id ${text} not null,
       level ${integer} not null,
       hash ${text} not null,
       start ${text} not null,
       permissions ${text},
       ratelimits ${text},
       allowed_ips ${text},
       credits_max ${integer},
       meta ${text},
       by_holder ${integer} not null,
       created_at ${integer} not null,
       expires_at ${integer} not null,
       deleted_at ${integer}
     )${postgres ? "" : " strict"}`,
  );
  await run("create unique index derived_keys_hash on derived_keys (hash)");
  await run("create index derived_keys_top on derived_keys (top_id, expires_at)");
  await run("create index derived_keys_owner on derived_keys (owner_id, created_at)");
  await run("create index derived_keys_expiry on derived_keys (expires_at, id)");
  await run("create index derived_keys_workspace on derived_keys (workspace_id, id)");
  await run(`alter table apis add column own_key_derivation ${integer}`);
}
