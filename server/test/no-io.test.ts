/**
 * A verification of a cached key is answered from memory. Each of these counts is tested to count: it detects a
 * verification of a key that is not cached.
 */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { existsSync, readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import inject from "light-my-request";
import { openTestServer, type TestServer } from "./harness.ts";

const VERIFICATIONS = 1_000;
const ROUNDS_MAX = 5;

/** Resources of pure computation: promises, and turns of the event loop. */
const computing = new Set(["PROMISE", "TickObject", "Immediate", "Microtask"]);

describe("keys.verifyKey of a cached key", () => {
  let server: TestServer;
  let key: string;
  before(async () => {
    server = await openTestServer();
    ({ key } = await server.createKey(await server.createApi(), {
      permissions: ["documents.read"],
      externalId: "user",
    }));
  });
  after(() => server.close());

  const verify = async (rootKey: string | null, presented = key) => {
    const { payload } = await inject(server.service.dispatch, {
      method: "POST",
      url: "/v2/keys.verifyKey",
      headers: {
        "content-type": "application/json",
        ...(rootKey !== null && { authorization: `Bearer ${rootKey}` }),
      },
      payload: JSON.stringify({ key: presented, permissions: "documents.read", tags: ["a=b"] }),
    });
    return JSON.parse(payload).data.code;
  };
  const verifyMany = async (rootKey: string | null) => {
    for (let i = 0; i < VERIFICATIONS; i++) assert.equal(await verify(rootKey), "VALID");
  };

  const callers = [
    { who: "with a root key", rootKey: () => server.rootKey },
    { who: "without a root key", rootKey: () => null },
  ];
  for (const { who, rootKey } of callers) {
    describe(who, () => {
      before(() => verifyMany(rootKey()));

      it("makes no query", async () => {
        assert.deepEqual(await asked(server, () => verifyMany(rootKey())), []);
      });

      it("starts no asynchronous resource", async () => {
        let kinds: string[] = ["not measured yet"];
        // The runtime has periodic work of its own, such as the date in answers, once a second.
        for (let round = 0; round < ROUNDS_MAX && kinds.length > 0; round++) {
          kinds = await begun(() => verifyMany(rootKey()));
        }
        assert.deepEqual(kinds, []);
      });

      it("reads and writes nothing", { skip: countsCalls() ? false : "this system does not count calls" }, async () => {
        const calls = await fewest(() => systemCalls(() => verifyMany(rootKey())));
        // The runtime's threads wake each other now and then; one call in each verification would make 1,000.
        assert(calls < VERIFICATIONS / 10, `${calls} reads and writes in ${VERIFICATIONS} verifications`);
      });

      it("touches no disk", async () => {
        assert.equal(await fewest(() => blocks(() => verifyMany(rootKey()))), 0);
      });
    });
  }

  describe("the counts", () => {
    it("detect a query", async () => {
      const { key: cold } = await server.createKey(await server.createApi());
      assert.deepEqual(await asked(server, () => verify(null, cold)), ["keysAt"]);
    });

    it("detect an asynchronous resource", async () => {
      const { access } = await import("node:fs");
      const wait = () => new Promise<void>((resolve) => access(".", () => resolve()));
      assert.deepEqual(await begun(wait), ["FSREQCALLBACK"]);
    });

    it("detect a read", { skip: countsCalls() ? false : "this system does not count calls" }, async () => {
      const read = async () => {
        for (let i = 0; i < VERIFICATIONS; i++) readFileSync(import.meta.filename);
      };
      assert((await fewest(() => systemCalls(read))) >= VERIFICATIONS);
    });
  });
});

/** The procedures of the store that were called during `action`. */
async function asked(server: TestServer, work: () => Promise<unknown>): Promise<string[]> {
  const names: string[] = [];
  server.store.interception = (name, proceed) => {
    names.push(name);
    return proceed();
  };
  await work();
  server.store.interception = undefined;
  return names;
}

/** The types of asynchronous resources that were created during `action`, except those of pure computation. */
async function begun(work: () => Promise<unknown>): Promise<string[]> {
  const kinds = new Set<string>();
  const hook = createHook({ init: (_id, kind) => void (computing.has(kind) || kinds.add(kind)) }).enable();
  await work();
  hook.disable();
  return [...kinds];
}

/** Reads and writes of all threads of this process during `action`, cached or not. */
async function systemCalls(work: () => Promise<unknown>): Promise<number> {
  const count = () => {
    const text = readFileSync("/proc/self/io", "utf8");
    return Number(/syscr: (\d+)/.exec(text)![1]) + Number(/syscw: (\d+)/.exec(text)![1]);
  };
  const first = count();
  await work();
  return count() - first;
}

function countsCalls(): boolean {
  return existsSync("/proc/self/io");
}

/** Disk blocks that this process read or wrote during `action`. */
async function blocks(work: () => Promise<unknown>): Promise<number> {
  const count = () => process.resourceUsage().fsRead + process.resourceUsage().fsWrite;
  const first = count();
  await work();
  return count() - first;
}

/** The smallest result of a few rounds, which excludes other work of the machine. */
async function fewest(count: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS_MAX && least > 0; round++) least = Math.min(least, await count());
  return least;
}
