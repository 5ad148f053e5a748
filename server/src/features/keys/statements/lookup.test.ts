import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KyselyPlugin } from "kysely";
import { instantAt } from "../../../../../engine/src/clock/clock.ts";
import { migrate } from "../../../platform/store/migrate.ts";
import { openSqliteConnection, raw } from "../../../platform/store/sqlite/connection.ts";
import { StoreWriter } from "../../../platform/store/workspace-store.ts";
import { ApiWriter } from "../../apis/statements.ts";
import { packedColumns, unpackAnyKey } from "../packed-key.ts";
import { KeyWriter } from "./keys.ts";
import { findKeysAt, selectDirectoryKeys } from "./lookup.ts";

describe("the look-up of keys", () => {
  it("reads the columns in the order in which they are unpacked", async () => {
    const connection = openSqliteConnection(":memory:", "write");
    try {
      await connection.transaction(migrate);
      const { sql: query } = selectDirectoryKeys(connection.sql).compile();
      await raw(connection.sql, `create temporary table answer as ${query}`);
      const { rows } = (await raw(connection.sql, "pragma table_info(answer)")) as { rows: { name: string }[] };
      assert.deepEqual(
        rows.map(({ name }) => name),
        packedColumns,
      );
    } finally {
      connection.close();
    }
  });

  it("builds its queries once: that costs more than to run them", async () => {
    const connection = openSqliteConnection(":memory:", "write");
    let built = 0;
    const counter: KyselyPlugin = {
      transformQuery({ node }) {
        built++;
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    try {
      await connection.transaction(migrate);
      await connection.transaction(async (sql) => {
        const workspace = { id: "ws_1", name: "first", enabled: 1, has_imported_keys: 0, is_default: 1, created_at: 1 };
        await sql.db
          .insertInto("workspaces")
          .values({ ...workspace, name_folded: "first" } as never)
          .execute();
        const store = new StoreWriter(sql, "ws_1");
        const createdAt = instantAt(1);
        await store
          .of(ApiWriter)
          .insert({ id: "api_1", name: "first", ownKeyAccess: false, ownKeyDerivation: false, createdAt });
        await store.of(KeyWriter).insert({
          id: "key_1",
          api_id: "api_1",
          identity_id: null,
          budget_id: null,
          concurrency: null,
          allowed_ips: null,
          pool_id: "pool_1",
          hash: "hash",
          hash_version: 1,
          start: "k",
          name: null,
          meta: null,
          enabled: 1,
          recoverable: 0,
          expires_at: null,
          created_at: createdAt,
        });
      });
      const sql = { ...connection.sql, db: connection.sql.db.withPlugin(counter) };
      const ids = async () => {
        const found = await findKeysAt(sql, [{ hash: "hash", workspace_id: "ws_1" }]);
        return found.map((key) => unpackAnyKey(key).id);
      };
      assert.deepEqual(await ids(), ["key_1"]);
      built = 0;
      assert.deepEqual(await ids(), ["key_1"]);
      assert.equal(built, 0);
    } finally {
      connection.close();
    }
  });
});
