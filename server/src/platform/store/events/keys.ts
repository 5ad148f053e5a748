import type { Sql } from "../store.ts";

/** A key, as its events describe it. */
export interface KeyInEvents {
  workspaceId: string;
  about: { keyId: string; apiId: string; externalId?: string };
}

/** What the events of these keys say of them, in the order of ids. Keys that are deleted, or whose API is, have none. */
export async function keysInEvents(sql: Sql, keyIds: readonly string[]): Promise<KeyInEvents[]> {
  const rows = await sql.db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .leftJoin("identities", (join) =>
      join.onRef("identities.id", "=", "keys.identity_id").on("identities.deleted_at", "is", null),
    )
    .select(["keys.id", "keys.workspace_id", "keys.api_id", "identities.external_id"])
    .where(sql.dialect.values.isOneOf("keys.id", keyIds))
    .where("keys.deleted_at", "is", null)
    .where("apis.deleted_at", "is", null)
    .orderBy("keys.id")
    .execute();
  return rows.map(({ id, workspace_id, api_id, external_id }) => ({
    workspaceId: workspace_id,
    about: { keyId: id, apiId: api_id, ...(external_id !== null && { externalId: external_id }) },
  }));
}
