/**
 * Once the deletion, disabling or narrowing of a root key or its workspace is answered, no call that needed the revoked
 * right commits, even if it was queued or in progress before.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ProblemCode } from "../../src/platform/rpc/problems.ts";
import { describeOnStores, type Reply, type TestServer as Server, stores, TestServer } from "../harness.ts";

/** A workspace with an API, and a root key that will be revoked or narrowed. */
interface Tenant {
  workspaceId: string;
  administrator: string;
  victim: { rootKeyId: string; key: string };
  apiId: string;
  /** A recoverable key. */
  keyId: string;
}

const VICTIM_PERMISSIONS = [
  "apis.*.*",
  "ratelimits.*.*",
  "rootKeys.*.create_root_key",
  "identities.*.*",
  "permissions.*.*",
];

let tenants = 0;

async function openTenant(server: Server): Promise<Tenant> {
  const { workspaceId, key: administrator } = await server.workspace(`tenant ${++tenants}`);
  const as = { as: administrator };
  const { apiId } = await server.ok("apis.createApi", { name: "api" }, as);
  const { keyId } = await server.ok("keys.createKey", { apiId, recoverable: true }, as);
  const victim = await server.ok("rootKeys.createRootKey", { name: "victim", permissions: VICTIM_PERMISSIONS }, as);
  return { workspaceId, administrator, victim, apiId, keyId };
}

/** Keys of an import: more than a chunk has, whatever its time. */
const IMPORTED = 600;
const hash = (text: string) => createHash("sha256").update(text).digest("hex");

/** A call of the victim: the procedure before which it is suspended, and how many of its runs pass before. */
interface VictimCall {
  procedure: "mutation" | "createNamespaces" | "recordReveal";
  skipped?: number;
  /** Whether the same call, with the same header, was made before the revocation, so that this one is a replay. */
  isReplay?: boolean;
  call(server: Server, tenant: Tenant): Promise<Reply>;
  /** The problem after the permissions were removed, if it is not the usual one. */
  narrowed?: ProblemCode;
}

const by = ({ victim }: Tenant) => ({ as: victim.key });

const victimCalls: Record<string, VictimCall> = {
  createApi: {
    procedure: "mutation",
    call: (server, tenant) => server.call("apis.createApi", { name: "another" }, by(tenant)),
  },
  createKey: {
    procedure: "mutation",
    call: (server, tenant) => server.call("keys.createKey", { apiId: tenant.apiId }, by(tenant)),
    narrowed: "api_not_found",
  },
  createRootKey: {
    procedure: "mutation",
    call: (server, tenant) =>
      server.call("rootKeys.createRootKey", { name: "heir", permissions: ["apis.*.create_api"] }, by(tenant)),
  },
  replayedCreateKey: {
    procedure: "mutation",
    isReplay: true,
    call: (server, tenant) =>
      server.call(
        "keys.createKey",
        { apiId: tenant.apiId },
        { ...by(tenant), headers: { "idempotency-key": "order-104217" } },
      ),
  },
  migrateKeys: {
    procedure: "mutation",
    skipped: 1,
    call: (server, { apiId, ...tenant }) => {
      const keys = Array.from({ length: IMPORTED }, (_, i) => ({ hash: hash(`${tenant.workspaceId} ${i}`) }));
      return server.call("keys.migrateKeys", { migrationId: "mine", apiId, keys }, by({ apiId, ...tenant }));
    },
  },
  firstUse: {
    procedure: "createNamespaces",
    call: (server, tenant) =>
      server.call("ratelimits.limit", { namespace: "fresh", identifier: "a", limit: 1, duration: 60_000 }, by(tenant)),
  },
  reveal: {
    procedure: "recordReveal",
    call: (server, tenant) => server.call("keys.getKey", { keyId: tenant.keyId, decrypt: true }, by(tenant)),
  },
};

const revocations: Record<string, { problem: ProblemCode; by(server: Server, tenant: Tenant): Promise<unknown> }> = {
  deleted: {
    problem: "authentication_failed",
    by: (server, { victim: { rootKeyId }, administrator: as }) =>
      server.ok("rootKeys.deleteRootKey", { rootKeyId }, { as }),
  },
  disabled: {
    problem: "root_key_disabled",
    by: (server, { victim: { rootKeyId }, administrator: as }) =>
      server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: false }, { as }),
  },
  expired: {
    problem: "root_key_expired",
    by: (server, { victim: { rootKeyId }, administrator: as }) =>
      server.ok("rootKeys.updateRootKey", { rootKeyId, expires: server.clock.now() }, { as }),
  },
  narrowed: {
    problem: "insufficient_permissions",
    by: (server, { victim: { rootKeyId }, administrator: as }) =>
      server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: ["audit.*.read_event"] }, { as }),
  },
  rerolled: {
    problem: "root_key_expired",
    by: (server, { victim: { rootKeyId }, administrator: as }) =>
      server.ok("rootKeys.rerollRootKey", { rootKeyId, expiration: 0 }, { as }),
  },
  workspaceDisabled: {
    problem: "workspace_disabled",
    by: (server, { workspaceId }) => server.ok("workspaces.updateWorkspace", { workspaceId, enabled: false }),
  },
  workspaceDisabledByHand: {
    problem: "workspace_disabled",
    by: (server, { workspaceId }) =>
      server.store.transact("setWorkspaceEnabled", {
        now: server.clock.now(),
        actor: "cli",
        workspaceId,
        enabled: false,
      }),
  },
};

/** Makes the call, and suspends it before its transaction. */
async function suspend(server: Server, victimCall: VictimCall, tenant: Tenant): Promise<{ release(): Promise<Reply> }> {
  const arrived = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  let skipped = 0;
  server.store.interception = async (name, proceed) => {
    if (name !== victimCall.procedure || skipped++ < (victimCall.skipped ?? 0)) return proceed();
    server.store.interception = undefined;
    arrived.resolve();
    await gate.promise;
    return proceed();
  };
  const reply = victimCall.call(server, tenant);
  await arrived.promise;
  return {
    release() {
      gate.resolve();
      return reply;
    },
  };
}

describeOnStores(
  "a revoked root key",
  (server, store) => {
    const interleavings = Object.keys(victimCalls).flatMap((victimCall) =>
      Object.keys(revocations).map((revocation) => [victimCall, revocation] as const),
    );
    for (const [callName, revocationName] of interleavings) {
      it(`commits nothing of ${callName} that was queued before it was ${revocationName}`, async () => {
        const victimCall = victimCalls[callName]!;
        const revocation = revocations[revocationName]!;
        const tenant = await openTenant(server);
        if (victimCall.isReplay) assert.equal((await victimCall.call(server, tenant)).status, 200);
        const { release } = await suspend(server, victimCall, tenant);
        await revocation.by(server, tenant);
        const before = await server.rows();
        const reply = await release();
        assert.deepEqual(await server.rows(), before);
        if (callName === "migrateKeys") {
          // The chunk that was stored before stays, and the rest is reported as failed.
          assert.equal(reply.status, 200);
          const { migrated, failed } = reply.body.data;
          assert(migrated.length > 0 && failed.length > 0);
          assert.equal(migrated.length + failed.length, IMPORTED);
        } else {
          const problem =
            revocationName === "narrowed" ? (victimCall.narrowed ?? revocation.problem) : revocation.problem;
          assert.equal(reply.problem, problem, JSON.stringify(reply.body));
        }
      });
    }

    it("continues with the permissions that it keeps, and has new ones at once", async () => {
      const tenant = await openTenant(server);
      const { rootKeyId } = tenant.victim;
      const { release } = await suspend(server, victimCalls.createApi!, tenant);
      await server.ok(
        "rootKeys.updateRootKey",
        { rootKeyId, permissions: ["apis.*.create_api"] },
        { as: tenant.administrator },
      );
      assert.equal((await release()).status, 200);
    });

    it("fails for its own waiting calls only, where several calls create one namespace", async () => {
      const tenant = await openTenant(server);
      const { release } = await suspend(server, victimCalls.firstUse!, tenant);
      const other = victimCalls.firstUse!.call(server, {
        ...tenant,
        victim: { rootKeyId: "", key: tenant.administrator },
      });
      await revocations.deleted!.by(server, tenant);
      assert.equal((await release()).problem, "authentication_failed");
      assert.equal((await other).status, 200);
    });

    it("commits nothing after the answer, for any calls in progress (seeded floods)", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 0, max: 40 }),
          fc.constantFrom(...Object.keys(revocations)),
          fc.constantFrom("createApi", "createKey", "createRootKey"),
          async (ahead, revocationName, callName) => {
            const tenant = await openTenant(server);
            const eventsOfVictim = async () =>
              ((await server.rowsOf("audit_events")) as { actor: string }[]).filter(
                ({ actor }) => actor === tenant.victim.rootKeyId,
              ).length;
            const call = () => victimCalls[callName]!.call(server, tenant);
            const calls = Array.from({ length: ahead }, call);
            const revoked = revocations[revocationName]!.by(server, tenant);
            for (let i = 0; i < 20; i++) calls.push(call());
            await revoked;
            const counted = await eventsOfVictim();
            const replies = await Promise.all(calls);
            assert.equal(await eventsOfVictim(), counted);
            assert.equal(replies.filter(({ status }) => status === 200).length, counted);
          },
        ),
        { numRuns: store === "postgres" ? 20 : 10 },
      );
    });

    it("cannot delete the root key that deletes it: of two such deletions one succeeds", async () => {
      for (let round = 0; round < 10; round++) {
        const { administrator, victim: _, ...tenant } = await openTenant(server);
        const make = () =>
          server.ok("rootKeys.createRootKey", { name: "rival", permissions: ["*"] }, { as: administrator });
        const [a, b] = [await make(), await make()];
        const replies = await Promise.all([
          server.call("rootKeys.deleteRootKey", { rootKeyId: b.rootKeyId }, { as: a.key }),
          server.call("rootKeys.deleteRootKey", { rootKeyId: a.rootKeyId }, { as: b.key }),
          server.call("apis.createApi", { name: "beside" }, { as: administrator }),
          server.call("workspaces.updateWorkspace", { workspaceId: tenant.workspaceId, name: `round ${round}` }),
        ]);
        const [one, other, ...beside] = replies.map(({ problem }) => problem ?? "passed");
        assert.deepEqual([one, other].sort(), ["authentication_failed", "passed"]);
        assert.deepEqual(beside, ["passed", "passed"]);
      }
    });
  },
  { VAULT_KEY: Buffer.alloc(32, 7).toString("base64") },
);

describe("the configured root key", () => {
  for (const store of stores) {
    it(`commits nothing once another start has replaced it, on ${store}`, async () => {
      const server = await new TestServer({ store }).open();
      try {
        const now = server.clock.now();
        const former = "lk_root_of_the_environment_1";
        await server.store.transact("prepare", { now, rootKey: former });
        await server.pass(1_000);
        const tenant = { victim: { rootKeyId: "", key: former } } as Tenant;
        const { release } = await suspend(server, victimCalls.createApi!, tenant);
        await server.store.transact("prepare", { now, rootKey: "lk_root_of_the_environment_2" });
        const before = await server.rows();
        assert.equal((await release()).problem, "authentication_failed");
        assert.deepEqual(await server.rows(), before);
      } finally {
        await server.close();
      }
    });
  }
});
