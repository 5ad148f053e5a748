/**
 * Callers with a valid root key who try to get more from a strict limit than it admits: many at once, on all nodes and
 * threads, from every moment between the borders of sub-windows on.
 */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { type Admission, mostAtOnce } from "../admissions.ts";
import { makeFolder, type Server, start } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { startRedis } from "../services/redis.ts";
import { Connections } from "../workers/service.ts";

const LIMIT = 20;
/** A sub-window has 63 ms. */
const DURATION = 1_000;
const CALLERS = 24;
const VICTIMS = 9;
/** The attack on a counter begins this long after that on the one before: at every phase of sub-windows. */
const STAGGER = 117;
const ATTACK = VICTIMS * STAGGER + 2 * DURATION;
/** Calls of a caller with which a standard limit is certainly exceeded. */
const CALLS_MIN = 200;

/** A counter under attack, and how it is called. */
interface Victim {
  readonly mode: "strict" | "standard";
  readonly operation: string;
  readonly body: (cost: number) => unknown;
  /** How often a call charges its cost. */
  readonly times: number;
  readonly admissions: Admission[];
}

describe("callers around the borders of sub-windows", () => {
  it("get at most the limit in any duration of three processes on one Redis", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const redis = await startRedis();
    t.after(() => redis.stop());
    const settings = { DATABASE_URL: database.url, REDIS_URL: redis.url, REDIS_POLICY: "closed" };
    const first = await start({ directory: makeFolder(t), settings });
    const others = await Promise.all([1, 2].map(() => start({ directory: makeFolder(t), settings })));
    await attack(t, [first, ...others]);
  });

  it("get at most the limit in any duration of one process with three threads", async (t) => {
    await attack(t, [await start({ directory: makeFolder(t), settings: { WORKERS: "3" } })]);
  });
});

async function attack(t: TestContext, servers: readonly Server[]): Promise<void> {
  const nodes = servers.map(({ address }) => Object.assign(new Connections(), { port: Number(new URL(address).port) }));
  t.after(() => {
    for (const node of nodes) node.disconnect();
  });
  const victims = await makeVictims(nodes[0]!);
  const begin = systemClock.monotonic();
  const elapsed = () => systemClock.monotonic() - begin;
  const callers = Array.from({ length: CALLERS }, async (_, i) => {
    const random = seededRandom(i + 1);
    let calls = 0;
    for (; elapsed() < ATTACK; calls++) {
      const open = Math.min(VICTIMS, 1 + Math.floor(elapsed() / STAGGER));
      const { operation, body, times, admissions } = victims[random.below(open)]!;
      const cost = 1 + random.below(3);
      const sentAt = systemClock.monotonic();
      const answer = await nodes[i % nodes.length]!.send(i, operation, body(cost));
      assert.equal(answer?.status, 200, JSON.stringify(answer?.body));
      const { success, passed, valid } = answer.body.data;
      if (success ?? passed ?? valid) {
        admissions.push({ cost: cost * times, sentAt, answeredAt: systemClock.monotonic() });
      }
    }
    return calls;
  });
  const calls = Math.min(...(await Promise.all(callers)));
  const most = (mode: Victim["mode"]) =>
    victims.filter((victim) => victim.mode === mode).map(({ admissions }) => mostAtOnce(admissions, DURATION));
  const [strict, standard] = [most("strict"), most("standard")];
  t.diagnostic(`at least ${calls} calls each; strict ${strict.join(", ")}; standard ${standard.join(", ")}`);
  assert.ok(Math.max(...strict) <= LIMIT);
  assert.ok(Math.min(...strict) > 0);
  // It is an attack: the standard mode gives way to it.
  if (calls >= CALLS_MIN) assert.ok(Math.max(...standard) > LIMIT);
}

/** Counters that are charged by `ratelimits.limit`, twice by one `ratelimits.multiLimit`, and by verifications of a key. */
async function makeVictims(node: Connections): Promise<Victim[]> {
  const { apiId } = await node.ok("apis.createApi", { name: "attacked" });
  const charge = async (mode: Victim["mode"], i: number): Promise<Omit<Victim, "mode" | "admissions">> => {
    const rule = { limit: LIMIT, duration: DURATION, mode };
    const counter = (cost: number) => ({ namespace: "attacked", identifier: `victim ${i}`, ...rule, cost });
    if (i % 3 === 0) return { operation: "ratelimits.limit", times: 1, body: counter };
    if (i % 3 === 1) {
      return { operation: "ratelimits.multiLimit", times: 2, body: (cost) => [counter(cost), counter(cost)] };
    }
    const ratelimits = [{ name: "calls", ...rule, autoApply: false }];
    const { key } = await node.ok("keys.createKey", { apiId, ratelimits });
    const body = (cost: number) => ({ key, ratelimits: [{ name: "calls", cost }] });
    return { operation: "keys.verifyKey", times: 1, body };
  };
  return Promise.all(
    Array.from({ length: VICTIMS }, async (_, i) => {
      const mode = i % 4 === 3 ? "standard" : "strict";
      return { mode, admissions: [], ...(await charge(mode, i)) };
    }),
  );
}
