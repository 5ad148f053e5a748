/** Every list is in the order of creation, page by page, while entries are created and deleted. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as kysely } from "kysely";
import { namesOf } from "../../src/platform/rpc/operation.ts";
import { writeCursor } from "../../src/platform/store/cursor.ts";
import type { Sql } from "../../src/platform/store/store.ts";
import { operations } from "../../src/service/operations.ts";
import { describeOnStores, type TestServer, VAULT_KEY } from "../harness.ts";

interface List {
  /** The body of every call of the list. */
  within?(server: TestServer): Promise<object>;
  /** Creates the entry of this name; returns its value of `shows` in the list. */
  create(server: TestServer, name: string, within: Record<string, string>): Promise<unknown>;
  shows: string;
  /** The name of an entry that shows something else. */
  nameOf?(shown: unknown): string;
  /** Restricts the list to entries of these names. */
  search?: true;
}

const lists: Record<string, List> = {
  "apis.listApis": { create: (server, name) => server.ok("apis.createApi", { name }), shows: "name", search: true },
  "apis.listKeys": {
    within: async (server) => ({ apiId: await server.createApi() }),
    create: (server, name, { apiId }) => server.createKey(apiId!, { name }),
    shows: "name",
  },
  "budgets.listBudgets": {
    create: (server, name) => server.ok("budgets.createBudget", { name, remaining: 1 }),
    shows: "name",
    search: true,
  },
  "holds.listHolds": {
    async create(server, name) {
      const { key } = await server.createKey(await server.createApi());
      await server.verify(key, { credits: { cost: Number(name.replace("order_", "")) }, hold: { ttl: 60_000 } });
    },
    shows: "credits",
    nameOf: (credits) => `order_${credits}`,
  },
  "identities.listIdentities": {
    create: (server, externalId) => server.ok("identities.createIdentity", { externalId }),
    shows: "externalId",
    search: true,
  },
  "plans.listPlans": {
    create: (server, name) => server.ok("plans.createPlan", { name }),
    shows: "name",
    search: true,
  },
  "keys.listDerivedKeys": {
    within: async (server) => ({ keyId: (await server.createKey(await server.createApi())).keyId }),
    create: (server, name, { keyId }) => server.ok("keys.deriveKey", { keyId, ttl: 86_400_000, meta: { name } }),
    shows: "meta",
    nameOf: (meta) => (meta as { name: string }).name,
  },
  "permissions.listPermissions": {
    create: (server, slug) => server.ok("permissions.createPermission", { name: slug, slug }),
    shows: "slug",
    search: true,
  },
  "permissions.listRoles": {
    create: (server, name) => server.ok("permissions.createRole", { name }),
    shows: "name",
    search: true,
  },
  "ratelimits.listNamespaces": {
    create: (server, namespace) =>
      server.ok("ratelimits.limit", { namespace, identifier: "a", limit: 1, duration: 1_000 }),
    shows: "name",
    search: true,
  },
  "ratelimits.listOverrides": {
    async within(server) {
      await server.ok("ratelimits.limit", { namespace: "listed", identifier: "a", limit: 1, duration: 1_000 });
      return { namespace: "listed" };
    },
    create: (server, identifier, { namespace }) =>
      server.ok("ratelimits.setOverride", { namespace, identifier, limit: 1, duration: 1_000 }),
    shows: "identifier",
  },
  // After the identities: an owner that does not exist is created.
  "portal.listPortalSessions": {
    within: async (server) => ({ apiId: await server.createApi() }),
    create: (server, externalId, { apiId }) =>
      server.ok("portal.createSession", { apiId, externalId, actions: ["list"] }),
    shows: "externalId",
  },
  "rootKeys.listRootKeys": {
    create: (server, name) => server.ok("rootKeys.createRootKey", { name, permissions: ["apis.*.read_api"] }),
    shows: "name",
    search: true,
  },
  "rootKeys.listSessions": {
    within: async (server) => ({ rootKeyId: (await server.grant("*")).rootKeyId }),
    create: (server, userAgent, { rootKeyId }) =>
      server.store.transact("signIn", {
        rootKeyId: rootKeyId!,
        address: "127.0.0.1",
        userAgent,
        now: server.clock.now(),
      }),
    shows: "userAgent",
  },
  "webhooks.listWebhooks": {
    create: (server, name) => server.ok("webhooks.createWebhook", { name, endpoint: "https://receiver.invalid/" }),
    shows: "name",
  },
  "workspaces.listWorkspaces": {
    create: (server, name) => server.ok("workspaces.createWorkspace", { name }),
    shows: "name",
    search: true,
  },
};

/** Lists in an order of their own, which their own tests check: the body of every call. */
const ordered: Record<string, List["within"]> = {
  "analytics.listDecisions": undefined,
  "audit.listEvents": undefined,
  "events.listEvents": undefined,
  "webhooks.listDeliveries": async (server) => {
    const { webhookId } = await server.ok("webhooks.createWebhook", { endpoint: "https://receiver.invalid/" });
    return { webhookId };
  },
};

const paged = operations.filter((operation) => operation.kind === "query" && operation.paged);

describeOnStores("lists", testLists, { VAULT_KEY });

function testLists(server: TestServer): void {
  it("all have an entry here", () => {
    const names = paged.map(({ name }) => name).filter((name) => !(name in ordered));
    assert.deepEqual(names.sort(), Object.keys(lists).sort());
  });

  for (const [name, { within, create, shows, nameOf, search }] of Object.entries(lists)) {
    it(`${name} is in the order of creation, also while entries are created and deleted`, async () => {
      const body = { ...(await within?.(server)), ...(search && { search: "order_" }) };
      // Neither the ids nor the names are in this order.
      const names = Array.from({ length: 9 }, (_, i) => `order_${(i * 7) % 9}`);
      for (const one of names.slice(0, 6)) {
        await create(server, one, body as Record<string, string>);
        await server.advance(1);
      }
      const seen: unknown[] = [];
      for (let cursor: string | undefined, page = 0; ; page++) {
        const reply = await server.call(name, { ...body, limit: 2, ...(cursor !== undefined && { cursor }) });
        const items = Array.isArray(reply.body.data) ? reply.body.data : reply.body.data.overrides;
        const shown = items.map((item: Record<string, unknown>) => item[shows]);
        seen.push(...(nameOf ? shown.map(nameOf) : shown));
        if (!reply.body.pagination.hasMore) break;
        cursor = reply.body.pagination.cursor;
        if (page < 3) {
          await create(server, names[6 + page]!, body as Record<string, string>);
          await server.advance(1);
        }
      }
      assert.deepEqual(seen, names);
    });
  }

  for (const operation of paged) {
    it(`${operation.name} rejects a cursor of another list`, async () => {
      const within = (await (lists[operation.name]?.within ?? ordered[operation.name])?.(server)) ?? {};
      const elsewhere = writeCursor("somewhere.else", { at: 1, id: "key_1" });
      for (const name of namesOf(operation)) {
        for (const cursor of ["garbage", "key_never0existed000", elsewhere, `${elsewhere}x`]) {
          const error = await server.rejected(name, { ...within, cursor }, "invalid_input");
          assert.equal(error.errors![0]!.location, "/properties/cursor/format");
          assert.match(error.errors![0]!.fix!, /`pagination.cursor`/);
        }
        await server.ok(name, { ...within, cursor: "" });
      }
    });
  }

  it("reject a made-up place that no database can compare (rule 226)", async () => {
    const apiId = await server.createApi();
    for (const [list, orderBy, within] of [
      ["apis.listKeys", "name", { apiId }],
      ["identities.listIdentities", "externalId", {}],
    ] as const) {
      const placed = (text: string) => writeCursor(list, { at: 0, id: "key_1", sorted: { by: orderBy, text } });
      await server.rejected(list, { ...within, orderBy, cursor: placed("a\0b") }, "invalid_input");
      await server.ok(list, { ...within, orderBy, cursor: placed("\u{10ffff}\u202e\n") });
    }
  });

  it("read a page from an index, without sorting", async () => {
    const plans = await server.change([], async (sql) => {
      const found: string[] = [];
      for (const [table, scope] of Object.entries(scopes)) found.push(await planOf(sql, table, scope));
      return found;
    });
    for (const plan of plans) assert.doesNotMatch(plan, /TEMP B-TREE|\bSort\b/, plan);
  });
}

/** By table: the column by which each list is restricted. */
const scopes: Record<string, string> = {
  apis: "workspace_id",
  identities: "workspace_id",
  permissions: "workspace_id",
  roles: "workspace_id",
  root_keys: "workspace_id",
  portal_sessions: "api_id",
  sessions: "workspace_id",
  ratelimit_namespaces: "workspace_id",
  ratelimit_overrides: "namespace_id",
  webhooks: "workspace_id",
  holds: "workspace_id",
  keys: "api_id",
};

async function planOf({ db, dialect }: Sql, table: string, scope: string): Promise<string> {
  const living = table === "keys" ? "and deleted_at is null" : "";
  const query =
    `select * from ${table} where ${scope} = 'x' ${living} and (created_at, id) >= (1, 'x') ` +
    "order by created_at, id limit 101";
  if (dialect.name === "postgres") {
    for (const kind of ["seqscan", "bitmapscan"]) await kysely.raw(`set local enable_${kind} = off`).execute(db);
  }
  const { rows } = await kysely
    .raw(`${dialect.name === "postgres" ? "explain" : "explain query plan"} ${query}`)
    .execute(db);
  return rows.map((row) => Object.values(row as object).join(" ")).join("\n");
}
