import { type Kysely, sql } from "kysely";

/** The workspace that a change belongs to. Null: it may concern any. Programs of earlier releases leave it null. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  await sql
    .raw(`alter table changes add column workspace_id ${dialect === "postgres" ? 'text collate "C"' : "text"}`)
    .execute(db);
}
