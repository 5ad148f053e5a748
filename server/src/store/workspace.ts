import { ApiReader, ApiWriter } from "./apis.ts";
import { BalanceWriter } from "./balances.ts";
import { IdentityReader, IdentityWriter } from "./identities.ts";
import { KeyReader, KeyWriter } from "./keys.ts";
import { NamespaceReader, NamespaceWriter } from "./namespaces.ts";
import { OverrideReader, OverrideWriter } from "./overrides.ts";
import { PermissionReader, PermissionWriter } from "./permissions.ts";
import { RatelimitWriter } from "./ratelimits.ts";
import type { Sql } from "./store.ts";

/** One workspace, for looking. What belongs to another workspace cannot be reached from here. */
export class StoreReader {
  readonly apis: ApiReader;
  readonly identities: IdentityReader;
  readonly keys: KeyReader;
  readonly namespaces: NamespaceReader;
  readonly overrides: OverrideReader;
  readonly permissions: PermissionReader;

  constructor(sql: Sql, workspaceId: string) {
    this.apis = new ApiReader(sql, workspaceId);
    this.identities = new IdentityReader(sql, workspaceId);
    this.keys = new KeyReader(sql, workspaceId);
    this.namespaces = new NamespaceReader(sql, workspaceId);
    this.overrides = new OverrideReader(sql, workspaceId);
    this.permissions = new PermissionReader(sql, workspaceId);
  }
}

/** One workspace, for changing; lives as long as its transaction. */
export class StoreWriter {
  readonly apis: ApiWriter;
  readonly balances: BalanceWriter;
  readonly identities: IdentityWriter;
  readonly keys: KeyWriter;
  readonly namespaces: NamespaceWriter;
  readonly overrides: OverrideWriter;
  readonly permissions: PermissionWriter;
  readonly ratelimits: RatelimitWriter;

  constructor(sql: Sql, workspaceId: string) {
    this.apis = new ApiWriter(sql, workspaceId);
    this.balances = new BalanceWriter(sql, workspaceId);
    this.identities = new IdentityWriter(sql, workspaceId);
    this.keys = new KeyWriter(sql, workspaceId);
    this.namespaces = new NamespaceWriter(sql, workspaceId);
    this.overrides = new OverrideWriter(sql, workspaceId);
    this.permissions = new PermissionWriter(sql, workspaceId);
    this.ratelimits = new RatelimitWriter(sql, workspaceId);
  }
}
