import { type Kysely, sql } from "kysely";

/** The APIs with a policy by workspace. Its first policy demands this step: earlier programs create keys that do not obey it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw("create index apis_with_policy on apis (workspace_id, id) where policy is not null and deleted_at is null")
    .execute(db);
}
