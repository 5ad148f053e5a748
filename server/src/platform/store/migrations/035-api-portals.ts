import { type Kysely, sql } from "kysely";

/** What sessions of the portal inherit from their API. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  await sql
    .raw(`alter table apis add column portal ${dialect === "postgres" ? 'text collate "C"' : "text"}`)
    .execute(db);
}
