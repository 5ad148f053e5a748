import { type Kysely, sql } from "kysely";

/** The log of decisions, and how many rows each workspace has in it. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const table = (name: string, columns: string) =>
    sql.raw(`create table ${name} (${columns})${postgres ? "" : " strict, without rowid"}`).execute(db);

  await table(
    "analytics_decisions",
    `workspace_id ${text} not null,
     at ${integer} not null,
     id ${text} not null,
     code ${text} not null,
     key_id ${text} not null,
     api_id ${text} not null,
     identity_id ${text} not null,
     namespace_id ${text} not null,
     request_id ${text} not null,
     answer ${text} not null,
     primary key (workspace_id, at, id)`,
  );
  for (const column of ["key_id", "api_id", "identity_id", "namespace_id", "request_id"]) {
    await sql
      .raw(
        `create index analytics_decisions_${column} on analytics_decisions (workspace_id, ${column}, at)
         where ${column} <> ''`,
      )
      .execute(db);
  }
  await sql.raw("create index analytics_decisions_code on analytics_decisions (workspace_id, code, at)").execute(db);
  await table("analytics_decision_counts", `workspace_id ${text} not null primary key, "rows" ${integer} not null`);
}
