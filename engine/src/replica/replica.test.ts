import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../clock/simulated.ts";
import { hashSecret } from "../crypto/hash.ts";
import { DecidedElsewhere } from "../errors/decided-elsewhere.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import { seededRandom } from "../random/seeded.ts";
import { jsonAnswers } from "../verification/answers.ts";
import type { VerificationEvent } from "../verification/event.ts";
import { Namespaces } from "../verification/namespaces.ts";
import type { VerificationRequest } from "../verification/request.ts";
import { HomeUnavailable, PositionUnreadable, type ReplicaKey, rejectAnswer } from "./home.ts";
import { Replica } from "./replica.ts";
import { SimulatedHome } from "./simulated-home.ts";
import { ELSEWHERE } from "./source.ts";
import type { StreamState } from "./stream.ts";

const START = 1_768_478_400_000;
/** What is promised: the time from a revocation until the last call with the key that can be valid. */
const REVOCATION_MAX = 1_000;

function replicaKey(n: number, members: Partial<ReplicaKey> = {}): ReplicaKey {
  return {
    keyId: `key_${n}`,
    apiId: "api_1",
    poolId: `pool_${n}`,
    name: null,
    meta: null,
    enabled: true,
    workspaceEnabled: true,
    expiresAt: null,
    allowedIps: null,
    apiAllowedIps: null,
    identity: null,
    ratelimits: [],
    roles: [],
    permissions: [],
    needs: [],
    ...members,
  };
}

/** A key string with this number, of another form than the service creates: the workspace has imported keys. */
function secretOf(n: number): string {
  return `secret_${n}`;
}

async function open({ seed = 1, nodes = 1, staleMax = 0 } = {}) {
  const clock = new SimulatedClock(START);
  const random = seededRandom(seed);
  const home = new SimulatedHome(clock, random, nodes);
  const states: StreamState[] = [];
  const counted: VerificationEvent[] = [];
  const replica = new Replica({
    form: jsonAnswers,
    clock,
    random,
    home,
    bytesMax: 16 * 1024 * 1024,
    staleMax,
    lookupsPerSecond: 1_000,
    leases: true,
    recorder: { verification: (event) => void counted.push(event) },
    status: () => ({ id: "edge_1", kind: "library", version: "1", reports: 0 }),
    onState: (state) => void states.push(state),
  });
  const settle = async () => {
    for (let i = 0; i < 4; i++) await setImmediate();
  };
  const pass = async (length: number) => {
    for (let left = length; left > 0; left -= 10) {
      clock.advance(Math.min(left, 10));
      await settle();
    }
  };
  const add = (n: number, members: Partial<ReplicaKey> = {}) => {
    const hash = hashSecret(secretOf(n));
    home.keys.set(hash, replicaKey(n, members));
    home.change(hash);
  };
  const revoke = (n: number) => {
    home.keys.delete(hashSecret(secretOf(n)));
    home.change(`key_${n}`);
  };
  const request = (n: number, members: Partial<VerificationRequest> = {}): VerificationRequest => ({
    key: secretOf(n),
    workspaceId: home.workspaceId,
    principal: null,
    address: "192.0.2.1",
    requestId: "req_1",
    now: clock.now(),
    startedAt: clock.monotonic(),
    ...members,
  });
  /** Verifies while time passes. */
  const verify = async (n: number, members: Partial<VerificationRequest> = {}) => {
    const answer = replica.verification.verify(request(n, members));
    let settled: unknown;
    const done = Promise.resolve(answer).then(
      (text) => {
        settled = JSON.parse(text as string);
      },
      (error) => {
        settled = error;
      },
    );
    for (let i = 0; settled === undefined && i < 1_000; i++) await pass(10);
    await done;
    return settled as { code?: string; keyId?: string };
  };
  const started = replica.start();
  await pass(100);
  await started;
  return { clock, home, replica, states, counted, random, pass, add, revoke, request, verify };
}

describe("a replica", () => {
  it("asks home for a key once, and decides further calls alone", async () => {
    const { add, verify, home, replica, request, counted } = await open();
    add(1, { permissions: ["documents.read"] });
    assert.equal((await verify(1)).code, "VALID");
    const asked = home.asked.records;
    const answer = replica.verification.verify(request(1, { permissions: "documents.write" }));
    assert.equal(typeof answer, "string", "no promise");
    assert.equal(JSON.parse(answer as string).code, "INSUFFICIENT_PERMISSIONS");
    assert.equal(home.asked.records, asked);
    assert.equal(counted.length, 2);
  });

  it("charges at home, in one question, the calls of one moment whose keys have limits or balances", async () => {
    const { add, home, replica, request, verify, pass } = await open();
    for (let n = 0; n < 50; n++) add(n, { needs: [["limits", "balance", "budgets", "plan", "concurrency"][n % 5]!] });
    for (let n = 0; n < 50; n++) if (n % 5 === 0) add(n, { needs: ["limits"], ratelimits: [limitRow] });
    for (let n = 0; n < 50; n++) await verify(n);
    await pass(100);
    home.asked.charges = 0;
    const answers = Array.from({ length: 50 }, (_, n) => replica.verification.verify(request(n)));
    await pass(100);
    for (const answer of await Promise.all(answers)) assert.equal(JSON.parse(answer as string).code, "VALID");
    assert.ok(home.asked.charges <= 3, `${home.asked.charges} questions`);
  });

  it("leaves to home what it does not know", async () => {
    const { add, home, verify, replica, request, pass } = await open();
    add(1, { needs: ["a feature of a later release"], enabled: false });
    const first = await verify(1);
    assert.ok(first instanceof DecidedElsewhere && first.by === "call");
    // Home no longer needs it: within seconds the replica decides.
    home.keys.set(hashSecret(secretOf(1)), replicaKey(1));
    await pass(6_000);
    assert.equal((await verify(1)).code, "VALID");
    for (const members of [
      { hold: { ttl: 1_000 } },
      { migrationId: "old" },
      { workspaceId: "ws_2" },
      { idempotent: {} as never },
    ] as Partial<VerificationRequest>[]) {
      assert.throws(() => replica.verification.verify(request(1, members)), DecidedElsewhere);
    }
  });

  it("decides nothing once home refuses it", async () => {
    const { add, verify, home, pass, states } = await open();
    add(1);
    assert.equal((await verify(1)).code, "VALID");
    home.refuses = true;
    await pass(500);
    assert.deepEqual(states, ["refused"]);
    assert.ok((await verify(1)) instanceof StoreUnavailable);
    home.refuses = false;
    await pass(6_000);
    assert.equal((await verify(1)).code, "VALID");
    assert.deepEqual(states, ["refused", "current"]);
  });

  it("says that home is unavailable if it does not answer the first question in a second", async () => {
    const { clock, home, replica, pass } = await open();
    home.freeze(0, 10_000);
    const started = assert.rejects(replica.start(), HomeUnavailable);
    await pass(1_500);
    await started;
    assert.ok(clock.monotonic() < 3_000);
  });

  it("serves known keys for `staleMax` while home is away, and none without it", async () => {
    for (const staleMax of [0, 10_000]) {
      const { add, verify, home, pass } = await open({ staleMax });
      add(1);
      assert.equal((await verify(1)).code, "VALID");
      home.trouble.lost = 1_000;
      await pass(5_000);
      const answer = await verify(1);
      if (staleMax === 0) assert.ok(answer instanceof StoreUnavailable);
      else assert.equal(answer.code, "VALID");
      await pass(10_000);
      assert.ok((await verify(1)) instanceof StoreUnavailable);
      home.trouble.lost = 0;
      await pass(3_000);
      assert.equal((await verify(1)).code, "VALID");
    }
  });

  it("asks home that is away more often while calls are refused, and decides soon after it is back", async () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const { add, verify, home, replica, request, pass } = await open({ seed });
      add(1);
      assert.equal((await verify(1)).code, "VALID");
      home.trouble.lost = 1_000;
      await pass(10_000);
      // Each question fails at once: what is counted is pauses.
      home.asked.changes = 0;
      await pass(30_000);
      const alone = home.asked.changes;
      home.asked.changes = 0;
      for (let i = 0; i < 3_000; i++) {
        await assert.rejects(async () => replica.verification.verify(request(1)), StoreUnavailable);
        await pass(10);
      }
      const asked = home.asked.changes;
      assert.ok(alone >= 15 && alone <= 30 && asked >= 75 && asked <= 150, `${alone} questions, ${asked} with calls`);
      home.trouble.lost = 0;
      let refused = 0;
      for (; refused < 200; refused++) {
        try {
          await replica.verification.verify(request(1));
          break;
        } catch {
          await pass(10);
        }
      }
      assert.ok(refused * 10 <= 450, `${refused * 10} ms`);
    }
  });

  it("asks once for all calls that find its records too old, after it was suspended", async () => {
    const { add, revoke, verify, clock, home, replica, request, pass } = await open();
    add(1);
    assert.equal((await verify(1)).code, "VALID");
    revoke(1);
    home.asked.changes = 0;
    // The lid of a laptop: the monotonic clock stands still, the wall clock does not.
    clock.step(60_000);
    home.read();
    const answers = Array.from({ length: 100 }, () => replica.verification.verify(request(1)));
    await pass(300);
    for (const answer of await Promise.all(answers)) assert.equal(JSON.parse(answer as string).code, "NOT_FOUND");
    assert.ok(home.asked.changes <= 3, `${home.asked.changes} questions`);
  });

  it("asks again for a record that changed while it was on its way", async () => {
    const { add, revoke, home, replica, request, pass } = await open();
    add(1);
    const answer = Promise.withResolvers<void>();
    const resolveKeys = home.resolveKeys.bind(home);
    home.resolveKeys = async (question) => {
      const found = await resolveKeys(question);
      if (question.keys) await answer.promise;
      return found;
    };
    const verified = replica.verification.verify(request(1));
    await pass(50);
    revoke(1);
    // The stream is quicker than the record.
    await pass(400);
    answer.resolve();
    await pass(50);
    assert.equal(JSON.parse((await verified) as string).code, "NOT_FOUND");
  });

  it("leaves namespaces to a home of a release that cannot read questions about them", async () => {
    const { home, replica, pass } = await open();
    const answers: Record<string, number> = {};
    home.resolveKeys = async ({ namespaces = [] }) => {
      const [name = ""] = namespaces;
      const status = answers[name];
      if (status !== undefined) rejectAnswer({ operation: "replica.resolveKeys", status, detail: "No" });
      return { keys: [], rootKeys: [], namespaces: [{ namespaceId: name }] };
    };
    const found = new Namespaces({ directories: replica.directories, create: async () => undefined });
    const find = async (name: string) => {
      const asked = Promise.resolve(found.find(name, home.workspaceId));
      const [, record] = await Promise.all([pass(20), asked.catch((error: Error) => error)]);
      return record instanceof Error ? record : record?.namespaceId;
    };
    Object.assign(answers, { old: 400, away: 503 });
    assert.equal(await find("old"), ELSEWHERE);
    assert.equal(await find("known"), "known");
    assert.ok((await find("away")) instanceof HomeUnavailable);
    // It is asked again, a little later: home may be of another release by then.
    delete answers.old;
    await pass(6_000);
    assert.equal(await find("old"), "old");
  });

  it("forgets everything when home has another database", async () => {
    const { add, verify, home, pass } = await open();
    add(1);
    assert.equal((await verify(1)).code, "VALID");
    home.keys.clear();
    home.replaceDatabase();
    await pass(700);
    assert.equal((await verify(1)).code, "NOT_FOUND");
  });

  it("begins anew, and forgets everything, when home cannot read its position", async () => {
    const { add, verify, revoke, home, pass, states } = await open();
    add(1);
    await pass(700);
    assert.equal((await verify(1)).code, "VALID");
    const listChanges = home.listChanges.bind(home);
    let former: string | undefined;
    home.listChanges = (question) => {
      if (former === undefined) {
        former = question.position;
        revoke(1);
        home.read();
      }
      return question.position === former
        ? Promise.reject(new PositionUnreadable("must be a position of replica.listChanges"))
        : listChanges(question);
    };
    await pass(3_000);
    assert.deepEqual(states, ["unreachable", "current"]);
    assert.equal((await verify(1)).code, "NOT_FOUND");
  });

  for (const seed of [7, 54, 91, 12345, 20261126]) {
    it(`accepts no key more than a second after its revocation, by seed ${seed} (rule 177)`, async () => {
      const { clock, home, add, revoke, replica, request, random, pass } = await open({ seed, nodes: 3 });
      const revokedAt = new Map<number, number>();
      const compared = { valid: 0, revoked: 0, refused: 0, late: 0 };
      const violations: string[] = [];
      let keys = 20;
      for (let n = 0; n < keys; n++) add(n);
      const dying: number[] = [];
      for (let step = 0; step < 4_000; step++) {
        const chance = random.below(1_000);
        if (chance < 15) {
          // Often the newest one, which is being looked up.
          const n = random.below(2) === 0 ? keys - 1 : random.below(keys);
          if (!revokedAt.has(n)) {
            revoke(n);
            revokedAt.set(n, clock.monotonic());
            dying.unshift(n);
            add(keys++);
          }
        } else if (chance < 19) home.trouble.delayMax = [0, 10, 50, 200, 600, 1_500][random.below(6)]!;
        else if (chance < 22) home.trouble.lost = [0, 0, 0, 100, 1_000][random.below(5)]!;
        else if (chance < 24) home.freeze(random.below(3), random.below(3_000));
        else if (chance < 26) home.cutOff(random.below(3), random.below(3_000));
        // The database does not answer any of them.
        else if (chance < 29) for (let node = 0; node < 3; node++) home.cutOff(node, 1_500);
        // Keys that live, and often one that has just died.
        const n = [random.below(keys), keys - 1, dying[random.below(Math.min(3, dying.length))] ?? 0][random.below(3)]!;
        const startedAt = clock.monotonic();
        const died = revokedAt.get(n);
        const judge = (code: string) => {
          compared[code === "VALID" ? "valid" : "refused"]++;
          if (died === undefined) return;
          compared.revoked++;
          if (startedAt - died > REVOCATION_MAX) compared.late++;
          if (code === "VALID" && startedAt - died > REVOCATION_MAX)
            violations.push(`key ${n} was valid ${startedAt - died} ms after its revocation`);
        };
        try {
          const answer = replica.verification.verify(request(n));
          if (typeof answer === "string") judge(JSON.parse(answer).code);
          else
            void Promise.resolve(answer).then(
              (text) => judge(JSON.parse(text as string).code),
              () => judge("unavailable"),
            );
        } catch {
          judge("unavailable");
        }
        await pass(10);
      }
      home.trouble.delayMax = home.trouble.lost = 0;
      await pass(5_000);
      assert.deepEqual(violations, []);
      assert.ok(compared.valid > 300 && compared.late > 100, JSON.stringify(compared));
    });
  }
});

const limitRow = {
  id: "rl_1",
  name: "requests",
  limit: 10,
  duration: 60_000,
  mode: "standard",
  auto_apply: 1,
} as const;
