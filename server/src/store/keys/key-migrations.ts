import { sql as raw } from "kysely";
import type { Instant } from "../../clock/clock.ts";
import { inputRows } from "../json.ts";
import type { KeyMigrationRow } from "../schema.ts";
import type { Sql } from "../store.ts";

/** A migration as callers speak of it. */
export interface KeyMigrationReference {
  workspace_id: string;
  name: string;
}

/** The migrations that are meant: what the directory fills itself from. */
export async function findKeyMigrations(
  connection: Sql,
  references: readonly KeyMigrationReference[],
): Promise<KeyMigrationRow[]> {
  return connection.db
    .selectFrom(inputRows(connection, { workspace_id: "text", name: "text" }, references))
    .innerJoin("key_migrations as migrations", (join) =>
      join.onRef("migrations.workspace_id", "=", "input.workspace_id").onRef("migrations.name", "=", "input.name"),
    )
    .selectAll("migrations")
    .execute();
}

/** The migrations of one workspace. */
export class KeyMigrationWriter {
  readonly #sql: Sql;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  find(name: string): Promise<KeyMigrationRow | undefined> {
    return this.#sql.db
      .selectFrom("key_migrations")
      .selectAll()
      .where("workspace_id", "=", this.#workspaceId)
      .where("name", "=", name)
      .executeTakeFirst();
  }

  /** Makes a migration; false where the name is taken. */
  async insert(migration: Omit<KeyMigrationRow, "workspace_id">): Promise<boolean> {
    const inserted = await this.#sql.db
      .insertInto("key_migrations")
      .values({ ...migration, workspace_id: this.#workspaceId })
      .onConflict((conflict) => conflict.columns(["workspace_id", "name"]).doNothing())
      .returning("id")
      .executeTakeFirst();
    return inserted !== undefined;
  }

  /** Notes that keys without a checksum live here from now on; false where that was known. */
  async recordImport(at: Instant): Promise<boolean> {
    const noted = await this.#sql.db
      .updateTable("workspaces")
      .set({ has_imported_keys: 1, updated_at: at })
      .where("id", "=", this.#workspaceId)
      .where("has_imported_keys", "=", 0)
      .returning("id")
      .executeTakeFirst();
    return noted !== undefined;
  }
}

/** What the first verification of a key that was imported tells about it. */
export interface ImportedKeyUse {
  keyId: string;
  /** What may be shown of the key string. */
  start: string;
  /** Where the key is to be found by itself from now on: the hash of the whole string. */
  hash: string | null;
}

/** Keeps what first verifications told, of keys of any workspace. Doing it twice is harmless. */
export async function recordFirstUses(sql: Sql, uses: readonly ImportedKeyUse[], hashVersion: number): Promise<void> {
  const rows = uses.map(({ keyId, start, hash }) => ({ key_id: keyId, start, hash }));
  const input = (some: typeof rows) => inputRows(sql, { key_id: "text", start: "text", hash: "text" }, some);
  const found = rows.filter(({ hash }) => hash === null);
  const moved = rows.filter(({ hash }) => hash !== null);
  if (found.length > 0) {
    await sql.db
      .updateTable("keys")
      .from(input(found))
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
      // The same string may have been imported as a whole meanwhile. That key is the one that is found.
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
