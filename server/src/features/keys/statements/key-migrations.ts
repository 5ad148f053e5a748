import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { KeyMigrationReference } from "../../../../../engine/src/directory/stored.ts";
import type { ImportedKeyUse } from "../../../../../engine/src/verification/stored.ts";
import type { KeyMigrationRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** Finds migrations by name; the directory loads its records with this. */
export async function findKeyMigrations(
  connection: Sql,
  references: readonly KeyMigrationReference[],
): Promise<KeyMigrationRow[]> {
  return connection.db
    .selectFrom(connection.dialect.values.rows({ workspace_id: "text", name: "text" }, references))
    .innerJoin("key_migrations as migrations", (join) =>
      join.onRef("migrations.workspace_id", "=", "input.workspace_id").onRef("migrations.name", "=", "input.name"),
    )
    .selectAll("migrations")
    .execute();
}

/** The migrations of one workspace. */
export class KeyMigrationWriter extends WorkspaceRows {
  static readonly writes = true;

  find(name: string): Promise<KeyMigrationRow | undefined> {
    return this.sql.db
      .selectFrom("key_migrations")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("name", "=", name)
      .executeTakeFirst();
  }

  /** Inserts a migration; returns false if the name exists. */
  async insert(migration: Omit<KeyMigrationRow, "workspace_id">): Promise<boolean> {
    const inserted = await this.sql.db
      .insertInto("key_migrations")
      .values({ ...migration, workspace_id: this.workspaceId })
      .onConflict((conflict) => conflict.columns(["workspace_id", "name"]).doNothing())
      .returning("id")
      .executeTakeFirst();
    return inserted !== undefined;
  }

  /** Marks the workspace as having keys without a checksum; returns false if it was marked before. */
  async recordImport(at: Instant): Promise<boolean> {
    const updated = await this.sql.db
      .updateTable("workspaces")
      .set({ has_imported_keys: 1, updated_at: at })
      .where("id", "=", this.workspaceId)
      .where("has_imported_keys", "=", 0)
      .returning("id")
      .executeTakeFirst();
    return updated !== undefined;
  }
}

/** Stores the results of first verifications, for keys of any workspace. Idempotent. */
export async function recordFirstUses(sql: Sql, uses: readonly ImportedKeyUse[], hashVersion: number): Promise<void> {
  const rows = uses.map(({ keyId, start, hash }) => ({ key_id: keyId, start, hash }));
  const input = (part: typeof rows) => sql.dialect.values.rows({ key_id: "text", start: "text", hash: "text" }, part);
  const unmoved = rows.filter(({ hash }) => hash === null);
  const moved = rows.filter(({ hash }) => hash !== null);
  if (unmoved.length > 0) {
    await sql.db
      .updateTable("keys")
      .from(input(unmoved))
      .set({ start: raw<string>`input.start` })
      .whereRef("keys.id", "=", "input.key_id" as never)
      .where("keys.start", "=", "")
      .execute();
  }
  if (moved.length > 0) {
    await sql.db
      .updateTable("keys")
      .from(input(moved))
      .set({
        start: raw<string>`input.start`,
        hash: raw<string>`input.hash`,
        hash_version: hashVersion,
        migration_id: null,
      })
      .whereRef("keys.id", "=", "input.key_id" as never)
      .where("keys.migration_id", "is not", null)
      // Another key with the hash of the whole string may have been imported meanwhile. Look-ups find that one.
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("keys as others")
              .select("others.id")
              .whereRef("others.workspace_id", "=", "keys.workspace_id")
              .whereRef("others.hash", "=", "input.hash" as never),
          ),
        ),
      )
      .execute();
  }
}
