import { type Kysely, sql } from "kysely";

/** Their index is built in some tenths of a second. */
const KEYS_INDEXED_HERE = 100_000;

/** What deletes old rows by one node at a time, and what keeps purged keys dead. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table leases (
       name ${text} not null primary key,
       holder ${text} not null,
       token ${integer} not null,
       expires_at ${integer} not null
     )${postgres ? "" : " strict"}`,
  );
  await run("insert into leases (name, holder, token, expires_at) values ('retention', '', 0, 0)");
  await run(
    `create table purged_keys (
       hash ${text} not null,
       workspace_id ${text} not null,
       purged_at ${integer} not null,
       primary key (hash, workspace_id)
     )${postgres ? "" : " strict, without rowid"}`,
  );
  // In the database, because nodes of the release before this table import keys too.
  if (postgres) {
    await run(
      `create function keep_purged_keys_dead() returns trigger language plpgsql as $$
       begin
         if exists (select 1 from purged_keys where hash = new.hash and workspace_id = new.workspace_id) then
           return null;
         end if;
         return new;
       end $$`,
    );
    await run(
      `create trigger keep_purged_keys_dead before insert on keys for each row execute function keep_purged_keys_dead()`,
    );
  } else {
    await run(
      `create trigger keep_purged_keys_dead before insert on keys
       when exists (select 1 from purged_keys where hash = new.hash and workspace_id = new.workspace_id)
       begin select raise(ignore); end`,
    );
  }
  // A build blocks writes. On a large table of PostgreSQL, the index is built beside the service.
  const isSmall =
    !postgres ||
    (await sql`select 1 from keys limit 1 offset ${sql.lit(KEYS_INDEXED_HERE)}`.execute(db)).rows.length === 0;
  if (isSmall) await run("create index keys_deleted on keys (deleted_at) where deleted_at is not null");
}
