import type { Instant } from "../clock/clock.ts";
import { newId, type Random } from "../random/random.ts";
import { always, inputRows, jsonArray, parsed } from "./json.ts";
import type { RatelimitNamespaceRow, RatelimitOverrideRow } from "./schema.ts";
import type { Sql } from "./store.ts";

export type StoredOverride = Pick<RatelimitOverrideRow, "id" | "identifier" | "limit" | "duration" | "created_at">;

/** A namespace with its overrides, and the word by which it was asked for. */
export interface StoredNamespace extends Pick<RatelimitNamespaceRow, "id" | "workspace_id" | "name"> {
  asked: string;
  overrides: StoredOverride[];
}

/** A namespace as callers speak of it: by its name or by its id. */
export interface NamespaceReference {
  workspace_id: string;
  asked: string;
}

/**
 * The living namespaces that are meant, with their overrides: what the directory fills itself from. Where a word is the
 * id of one and the name of another, both come, the one with the id last.
 */
export async function findNamespaces(
  connection: Sql,
  references: readonly NamespaceReference[],
): Promise<StoredNamespace[]> {
  const input = () =>
    inputRows(connection, { workspace_id: "text", asked: "text" }, references as readonly Record<never, never>[] as never);
  const meant = (by: "name" | "id") =>
    connection.db
      .selectFrom(input())
      .innerJoin("ratelimit_namespaces as namespaces", (join) =>
        join
          .onRef("namespaces.workspace_id", "=", "input.workspace_id" as never)
          .onRef(`namespaces.${by}`, "=", "input.asked" as never)
          .on("namespaces.deleted_at", "is", null),
      )
      .select(["namespaces.id", "namespaces.workspace_id", "namespaces.name"])
      .select("input.asked" as never)
      .select((query) =>
        jsonArray(
          connection,
          query
            .selectFrom("ratelimit_overrides as overrides")
            .select(["overrides.id", "overrides.identifier", "overrides.limit", "overrides.duration", "overrides.created_at"])
            .whereRef("overrides.namespace_id", "=", "namespaces.id"),
        ).as("overrides"),
      );
  const rows = [...(await meant("name").execute()), ...(await meant("id").execute())];
  return rows.map((row) => ({ ...row, overrides: parsed(row.overrides) })) as StoredNamespace[];
}

export interface NamespacePageOptions {
  /** Only those whose name or id contains this text, whatever its case. */
  search: string;
  /** The first id of the page. */
  cursor?: string | undefined;
  limit: number;
}
