import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { IdentityReader, IdentityWriter } from "../../features/identities/statements.ts";
import { KeyReader, KeyWriter } from "../../features/keys/statements/keys.ts";
import { WorkspaceReader } from "../../features/workspaces/statements.ts";
import type { Sql } from "./store.ts";
import { StoreReader, StoreWriter } from "./workspace-store.ts";

describe("the store of a workspace", () => {
  // No statement runs.
  const sql = {} as Sql;

  it("makes the statements of a class once", () => {
    const store = new StoreWriter(sql, "ws_1");
    const keys: KeyWriter = store.of(KeyWriter);
    assert.equal(store.of(KeyWriter), keys);
    assert(store.of(KeyReader) instanceof KeyReader);
    assert.notEqual(new StoreWriter(sql, "ws_1").of(KeyWriter), keys);
  });

  it("collects events and bytes from all statements", () => {
    const store = new StoreWriter(sql, "ws_1");
    assert.deepEqual([store.events, store.metadataBytes], [[], 0]);
    const event = {
      type: "identity.created",
      objectId: "id_1",
      data: { identityId: "id_1", externalId: "a" },
    } as const;
    store.of(IdentityWriter).events.push(event);
    store.of(IdentityWriter).metadataBytes += 2;
    store.of(KeyWriter).metadataBytes += 3;
    assert.deepEqual([store.events, store.metadataBytes], [[event], 5]);
  });

  it("accepts readers only in a query, and classes of one workspace only", () => {
    const store = new StoreReader(sql, "ws_1");
    const identities: IdentityReader = store.of(IdentityReader);
    assert(identities instanceof IdentityReader);
    // @ts-expect-error A writer.
    store.of(KeyWriter);
    // @ts-expect-error It reads all workspaces.
    store.of(WorkspaceReader);
    // @ts-expect-error The same holds for a mutation.
    new StoreWriter(sql, "ws_1").of(WorkspaceReader);
    // @ts-expect-error The connection reaches all workspaces.
    assert.equal(store.sql, undefined);
  });
});
