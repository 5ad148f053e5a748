import type { Sql } from "../../platform/store/store.ts";

/** What a report names, in the workspace of the edge. */
export interface ReportedIds {
  workspaceId: string;
  keyIds: readonly string[];
  identityIds: readonly string[];
  rootKeyIds: readonly string[];
}

/** Those of them that exist there. */
export interface ReportedOwners {
  /** With the API of each. */
  keys: readonly { id: string; api_id: string }[];
  identityIds: readonly string[];
  rootKeyIds: readonly string[];
}

/** Finds what a report names. Deleted rows too: what was verified before counts for its owner. */
async function findReported(
  { db, dialect }: Sql,
  { workspaceId, keyIds, identityIds, rootKeyIds }: ReportedIds,
): Promise<ReportedOwners> {
  const keys =
    keyIds.length === 0
      ? []
      : await db
          .selectFrom("keys")
          .select(["id", "api_id"])
          .where("workspace_id", "=", workspaceId)
          .where(dialect.values.isOneOf("id", keyIds))
          .execute();
  const identities =
    identityIds.length === 0
      ? []
      : await db
          .selectFrom("identities")
          .select("id")
          .where("workspace_id", "=", workspaceId)
          .where(dialect.values.isOneOf("id", identityIds))
          .execute();
  const rootKeys =
    rootKeyIds.length === 0
      ? []
      : await db
          .selectFrom("root_keys")
          .select("id")
          .where("workspace_id", "=", workspaceId)
          .where(dialect.values.isOneOf("id", rootKeyIds))
          .execute();
  return { keys, identityIds: identities.map(({ id }) => id), rootKeyIds: rootKeys.map(({ id }) => id) };
}

/** The procedures of edges. */
export const replicaProcedures = {
  reading: { reportedOwners: (sql: Sql, ids: ReportedIds) => findReported(sql, ids) },
  writing: {},
};
