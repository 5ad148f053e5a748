/** What `latchkey edge` counts, and the service after outages and changed root keys: nothing waits behind what it never takes. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { instantAt } from "../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../engine/src/clock/simulated.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { rejectAnswer } from "../../engine/src/replica/home.ts";
import { Replica } from "../../engine/src/replica/replica.ts";
import { type ReportTaker, verificationsOf } from "../../engine/src/replica/report.ts";
import { jsonAnswers } from "../../engine/src/verification/answers.ts";
import { EdgeCounts } from "../src/edge/counts.ts";
import { RootKeyUses } from "../src/edge/root-key-uses.ts";
import { Authenticator } from "../src/platform/rpc/authenticate.ts";
import { TestHome } from "./edge.ts";
import { describeOnStores, type TestServer } from "./harness.ts";

const DAY = 86_400_000;

interface Counted {
  keyId: string;
  apiId: string;
  tags?: string[];
}

async function openCounts(t: TestContext, home: ReportTaker, clock: SimulatedClock, seed = 1) {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const losses: number[] = [];
  const counts = new EdgeCounts({
    clock,
    random: seededRandom(seed),
    home,
    folder,
    diskBytesMax: 2 ** 26,
    events: {
      analyticsBack: () => {},
      analyticsLost: () => assert.fail("lost on its way"),
      analyticsMergeFailed: () => assert.fail("there is nothing to merge"),
      analyticsOutage: () => {},
      analyticsUnreadable: (cause) => assert.fail(String(cause)),
      countsRejected: (verifications) => void losses.push(verifications),
    },
  });
  await counts.analytics.start();
  t.after(() => counts.analytics.stop());
  const count = ({ keyId, apiId, tags }: Counted) =>
    counts.analytics.recorder.verification({
      at: clock.now(),
      startedAt: clock.monotonic(),
      workspaceId: "ws_1",
      key: { keyId, apiId, identity: null },
      code: "VALID",
      tags,
      creditsSpent: 0,
      cost: undefined,
      limit: undefined,
      address: "203.0.113.7",
      requestId: "req_1",
    });
  return { counts, losses, count };
}

async function totalOf(server: TestServer, keyId: string) {
  const now = server.clock.now();
  return (await server.ok("analytics.getKeyStats", { keyId, start: now - 2 * DAY, end: now + 60_000 })).total;
}

describeOnStores("The counts of an edge", (server) => {
  async function opened(t: TestContext, ...grants: string[]) {
    const [first, second] = [await server.createApi(), await server.createApi()];
    const keys = [await server.createKey(first), await server.createKey(second)] as const;
    const edgeKey = await server.grant(...(grants.length > 0 ? grants : ["replicas.*.open"]));
    const home = new TestHome(server, edgeKey.key);
    const of = [
      { keyId: keys[0].keyId, apiId: first },
      { keyId: keys[1].keyId, apiId: second },
    ] as const;
    return { edgeKey, home, of, ...(await openCounts(t, home, server.clock)) };
  }

  it("go on after the root key no longer opens one of the APIs (rules 173 and 180)", async (t) => {
    const { edgeKey, of, counts, losses, count } = await opened(t);
    for (let i = 0; i < 5; i++) count(of[0]);
    for (let i = 0; i < 7; i++) count(of[1]);
    await server.ok("rootKeys.updateRootKey", {
      rootKeyId: edgeKey.rootKeyId,
      permissions: [`replicas.${of[1].apiId}.open`],
    });
    await server.pass(20_000);
    assert.equal(await totalOf(server, of[0].keyId), 0);
    assert.equal(await totalOf(server, of[1].keyId), 7);
    assert.deepEqual(losses, [5]);
    count(of[1]);
    await server.pass(20_000);
    assert.equal(await totalOf(server, of[1].keyId), 8);
    assert.deepEqual([counts.lost, counts.waiting], [5, 0]);
    assert.equal((await server.getKey(of[1].keyId)).lastUsedAt !== undefined, true);
  });

  it("go on after an outage of more than a day, whose oldest are lost and said so once (rules 173 and 180)", async (t) => {
    const { home, of, counts, losses, count } = await opened(t);
    home.isAway = true;
    for (let i = 0; i < 4; i++) count(of[0]);
    server.clock.step(DAY + 120_000);
    await server.pass(2_000);
    for (let i = 0; i < 3; i++) count(of[0]);
    await server.pass(2_000);
    assert.deepEqual(losses, []);
    home.isAway = false;
    await server.pass(20_000);
    assert.equal(await totalOf(server, of[0].keyId), 3);
    assert.deepEqual(losses, [4]);
    count(of[0]);
    await server.pass(20_000);
    assert.equal(await totalOf(server, of[0].keyId), 4);
    assert.deepEqual([counts.lost, counts.waiting], [4, 0]);
    assert.equal((await server.getKey(of[0].keyId)).lastUsedAt !== undefined, true);
  });

  it("do not call a root key unused that verifies keys only at an edge (rule 181)", async (t) => {
    const edgeKey = await server.grant("replicas.*.open");
    const [caller, idle] = [await server.grant("apis.*.verify_key"), await server.grant("apis.*.verify_key")];
    server.clock.step(100 * DAY);
    await server.pass(1_000);
    const home = new TestHome(server, edgeKey.key);
    const { clock } = server;
    const replica = new Replica({
      form: jsonAnswers,
      clock,
      random: seededRandom(1),
      home,
      bytesMax: 2 ** 24,
      staleMax: 0,
      lookupsPerSecond: 1_000,
      leases: true,
      recorder: null,
      status: () => ({ id: "edge_0000000000000009", kind: "process", version: "0.1.0", reports: 0 }),
      onState: () => {},
    });
    t.after(() => replica.close());
    const authenticator = new Authenticator(replica.directories);
    await replica.start();
    const uses = new RootKeyUses({
      clock,
      home,
      recorder: "edge_1",
      rpc: {
        takeRootKeyUses: () => authenticator.takeUses(),
        recordRootKeyUses: (some) => {
          for (const { rootKeyId, at } of some) authenticator.recordUse(rootKeyId, instantAt(at));
        },
      },
    });
    const credentials = { authorization: `Bearer ${caller.key}` };
    const principal = await authenticator.authenticate(credentials, "203.0.113.7", clock.now(), clock.monotonic());
    assert.equal(principal?.rootKeyId, caller.rootKeyId);
    // Home does not take the first report.
    home.isAway = true;
    await server.pass(12_000);
    home.isAway = false;
    await server.pass(80_000);
    await uses.stop();
    const { rootKeysUnused } = await server.ok("system.getFindings", {});
    const ids = rootKeysUnused.map(({ rootKeyId }: { rootKeyId: string }) => rootKeyId);
    assert.deepEqual([ids.includes(caller.rootKeyId), ids.includes(idle.rootKeyId)], [false, true]);
  });

  it("are all taken, also with the longest tags (rule 180)", async (t) => {
    const { of, counts, count } = await opened(t);
    const tags = (n: number) => Array.from({ length: 10 }, (_, i) => `${n} ${i} `.padEnd(128, "ß"));
    for (let n = 0; n < 1_900; n++) count({ ...of[0], tags: tags(n) });
    await server.pass(20_000);
    assert.equal(await totalOf(server, of[0].keyId), 1_900);
    assert.deepEqual([counts.lost, counts.waiting], [0, 0]);
  });
});

it("The counts of an edge go on past those at which home fails (rule 180)", async (t) => {
  const clock = new SimulatedClock(1_768_478_400_000);
  const taken = new Map<string, number>();
  const { counts, losses, count } = await openCounts(
    t,
    {
      async report({ verifications, uses }) {
        if ([...verifications.map(([, , keyId]) => keyId), ...uses.map(({ keyId }) => keyId)].includes("bad")) {
          rejectAnswer({ operation: "replica.report", status: 500, detail: "a fault of home" });
        }
        for (const [, , keyId, , , , n] of verifications) taken.set(`${keyId}`, (taken.get(`${keyId}`) ?? 0) + n);
        for (const { keyId } of uses) taken.set(`use of ${keyId}`, 1);
        return {};
      },
    },
    clock,
  );
  for (const keyId of ["bad", "key_1", "bad"]) count({ keyId, apiId: "api_1" });
  for (let i = 0; i < 100; i++) {
    if (i % 2 === 0) count({ keyId: "key_2", apiId: "api_1" });
    clock.advance(1_000);
    await counts.analytics.outbox.settled();
  }
  assert.deepEqual(Object.fromEntries(taken), { key_1: 1, key_2: 50, "use of key_1": 1, "use of key_2": 1 });
  assert.deepEqual(
    losses.filter((lost) => lost > 0),
    [2],
  );
  assert.deepEqual([counts.lost, counts.waiting], [2, 0]);
});

it("The counts of an edge are counted or lost once each, whatever home answers (rule 180)", async (t) => {
  for (let seed = 1; seed <= 25; seed++) {
    const random = seededRandom(seed);
    const clock = new SimulatedClock(1_768_478_400_000);
    const last = new Map<string, number>();
    let [counted, isCalm] = [0, false];
    const { counts, losses, count } = await openCounts(
      t,
      {
        async report({ recorder, sequence, verifications }) {
          const status = [undefined, 401, 503, 400, 403, 413][isCalm ? 9 : random.below(12)];
          // What home has counted it does not reject.
          const isCounted = sequence <= (last.get(recorder) ?? 0);
          const isLost = !isCalm && random.below(6) === 0;
          if (status !== undefined && !(isCounted && [400, 403, 413].includes(status)))
            rejectAnswer({ operation: "replica.report", status, detail: "no" });
          const all = verificationsOf(verifications);
          const leftOut = Math.min(all, sequence % 3);
          if (sequence > (last.get(recorder) ?? 0)) counted += all - leftOut;
          last.set(recorder, Math.max(sequence, last.get(recorder) ?? 0));
          // The answer is lost.
          if (isLost) rejectAnswer({ operation: "replica.report", status: undefined, detail: "lost" });
          return { leftOut };
        },
      },
      clock,
      seed,
    );
    let total = 0;
    const pass = async (length: number) => {
      for (let i = 0; i < length; i += 500) {
        clock.advance(500);
        await counts.analytics.outbox.settled();
      }
    };
    for (let i = 0; i < 40; i++) {
      for (let n = random.below(5); n > 0; n--) {
        count({ keyId: `key_${random.below(3)}`, apiId: "api_1", ...(n % 2 === 0 && { tags: [`t=${n}`] }) });
        total++;
      }
      await pass(1_000);
    }
    isCalm = true;
    await pass(20_000);
    const lost = losses.reduce((sum, one) => sum + one, 0);
    assert.equal(counts.waiting, 0);
    assert.equal(counted + lost, total, `seed ${seed}`);
    assert.equal(counts.lost, lost);
  }
});
