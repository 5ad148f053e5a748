import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type Clock, type Instant, instantAt, type Milliseconds, type Timer } from "../clock/clock.ts";
import { SimulatedClock } from "../clock/simulated.ts";
import { hashSecret } from "../crypto/hash.ts";
import type { Charge } from "../limits/counters.ts";
import type { Random } from "../random/random.ts";
import { seededRandom } from "../random/seeded.ts";
import { decide, unused, type WindowState } from "../rules/window.ts";
import { jsonAnswers } from "../verification/answers.ts";
import type { VerificationRequest } from "../verification/request.ts";
import { HomeUnavailable, type LeaseAnswer, type LeaseQuestion, type ReplicaKey } from "./home.ts";
import { Replica } from "./replica.ts";
import { SimulatedHome } from "./simulated-home.ts";
import { chargesOf, type NamedCost } from "./simulated-limits.ts";

/** The start of a minute. */
const START = 1_768_478_400_000;
/** For how long a record may be used after a change. */
const RECORD_AGE_MAX = 1_000;

type Limit = ReplicaKey["ratelimits"][number];

function limitRow(name: string, limit: number, duration: number, more: Partial<Limit> = {}): Limit {
  return { id: `rl_${name}`, name, limit, duration, mode: "standard", auto_apply: 1, ...more } as Limit;
}

function keyWith(n: number, ratelimits: readonly Limit[], identity: ReplicaKey["identity"] = null): ReplicaKey {
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
    identity,
    ratelimits,
    roles: [],
    permissions: [],
    needs: ["limits"],
  };
}

/** The clocks of one process. It can be suspended, and killed. */
class ProcessClock implements Clock {
  /** What the wall clock shows too much. */
  wallError: Milliseconds = 0;
  readonly #base: SimulatedClock;
  #behind: Milliseconds = 0;
  #suspendedAt: Milliseconds | undefined;
  #isDead = false;
  #waiting: (() => void)[] = [];

  constructor(base: SimulatedClock) {
    this.#base = base;
  }

  get isRunning(): boolean {
    return this.#suspendedAt === undefined && !this.#isDead;
  }

  now(): Instant {
    return instantAt(this.#base.now() + this.wallError);
  }

  monotonic(): Milliseconds {
    return this.#base.monotonic() - this.#behind;
  }

  schedule(delay: Milliseconds, task: () => void): Timer {
    return this.#base.schedule(delay, () => this.run(task));
  }

  /** Runs a task when the process runs. */
  run(task: () => void): void {
    if (this.#isDead) return;
    if (this.#suspendedAt === undefined) task();
    else this.#waiting.push(task);
  }

  suspend(): void {
    this.#suspendedAt = this.#base.monotonic();
  }

  /** @param isLid whether the monotonic clock stood still, as while the lid of a laptop is closed. */
  resume(isLid: boolean): void {
    if (isLid) this.#behind += this.#base.monotonic() - this.#suspendedAt!;
    this.#suspendedAt = undefined;
    for (const task of this.#waiting.splice(0)) task();
  }

  kill(): void {
    this.#isDead = true;
  }
}

const LEASE = "a lease";

/** What was allowed, by the time of home. */
class Truth {
  readonly violations: string[] = [];
  allowed = 0;
  readonly #clock: SimulatedClock;
  readonly #states = new Map<string, WindowState>();
  /** Limits by their counters, with the time until which they were in force. */
  readonly #limits = new Map<string, { limit: number; until: number }[]>();

  constructor(clock: SimulatedClock) {
    this.#clock = clock;
  }

  setLimits(charges: readonly Charge[]): void {
    const now = this.#clock.monotonic();
    for (const { counter, limit } of charges) {
      const former = this.#limits.get(counter) ?? [];
      for (const one of former) one.until = Math.min(one.until, now + RECORD_AGE_MAX);
      this.#limits.set(counter, [...former, { limit, until: Number.POSITIVE_INFINITY }]);
    }
  }

  add(charges: readonly Charge[], by: string): void {
    const now = this.#clock.now();
    this.allowed++;
    for (const { counter, duration, cost, commit, mode } of charges) {
      if (mode === "strict" && by === LEASE) this.violations.push(`${counter} was leased`);
      if (commit === false || mode === "strict") continue;
      const inForce = (this.#limits.get(counter) ?? []).filter(({ until }) => until >= this.#clock.monotonic());
      const limit = Math.max(...inForce.map((one) => one.limit));
      const name = `${counter} ${duration}`;
      const charge = { limit, duration, cost };
      const decision = decide(this.#states.get(name) ?? unused, charge, now);
      if (!decision.allowed) this.violations.push(`${by} exceeds ${name} at ${now - START}`);
      const counted = decision.allowed
        ? decision
        : decide(this.#states.get(name) ?? unused, { ...charge, limit: 1e12 }, now);
      this.#states.set(name, counted.next);
    }
  }

  used({ counter, duration }: Charge): number {
    const charge = { limit: 1e12, duration, cost: 0 };
    return 1e12 - decide(this.#states.get(`${counter} ${duration}`) ?? unused, charge, this.#clock.now()).remaining;
  }
}

type Caught = { code?: string; isOfHome?: true; ratelimits?: { remaining: number; reset: number }[] };

class Simulation {
  readonly clock = new SimulatedClock(START);
  readonly random: Random;
  readonly home: SimulatedHome;
  readonly truth = new Truth(this.clock);
  /** Calls that leases covered, and answers of home. */
  readonly decided = { direct: 0, here: 0, atHome: 0, denied: 0, failed: 0 };

  constructor(seed = 1, nodes = 1) {
    this.random = seededRandom(seed);
    this.home = new SimulatedHome(this.clock, this.random, nodes);
    this.home.limits.onCharge = (charges) => this.truth.add(charges, "home");
  }

  setKey(n: number, key: ReplicaKey): void {
    const hash = hashSecret(secretOf(n));
    this.home.keys.set(hash, key);
    this.home.change(hash, key.keyId);
    const names = [...key.ratelimits, ...(key.identity?.ratelimits ?? [])].map(({ name }) => ({ name, cost: 1 }));
    this.truth.setLimits(chargesOf(key, names));
  }

  keyAt(n: number): ReplicaKey {
    return this.home.keys.get(hashSecret(secretOf(n)))!;
  }

  /** A direct caller takes all that is left of the limits of a key. */
  exhaust(n: number): void {
    const key = this.keyAt(n);
    const names = [...key.ratelimits, ...(key.identity?.ratelimits ?? [])].map(({ name }) => name);
    for (const name of names)
      for (let cost = 10_000; cost >= 1; cost /= 10)
        while (this.home.limits.charge(key, [{ name, cost }])!.allowed) this.decided.direct++;
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 3; i++) await setImmediate();
  }

  async pass(length: Milliseconds): Promise<void> {
    for (let left = length; left > 0; left -= 10) {
      this.clock.advance(Math.min(left, 10));
      await this.settle();
    }
  }

  async edge(options: { leases?: boolean; staleMax?: number } = {}): Promise<SimulatedEdge> {
    const edge = new SimulatedEdge(this, options);
    void edge.replica.start().catch(() => {});
    await this.pass(50);
    return edge;
  }
}

/** An edge in a process of its own. */
class SimulatedEdge {
  readonly clock: ProcessClock;
  readonly replica: Replica;
  readonly #simulation: Simulation;

  constructor(simulation: Simulation, { leases = true, staleMax = 0 }: { leases?: boolean; staleMax?: number }) {
    this.#simulation = simulation;
    const clock = new ProcessClock(simulation.clock);
    this.clock = clock;
    const { home } = simulation;
    const reached = <Q, A>(ask: (question: Q) => Promise<A>) => {
      return (question: Q) =>
        new Promise<A>((resolve, reject) => {
          ask(question).then(
            (answer) => clock.run(() => resolve(answer)),
            (error) => clock.run(() => reject(error)),
          );
        });
    };
    this.replica = new Replica({
      form: jsonAnswers,
      clock,
      random: simulation.random,
      home: {
        listChanges: reached((question) => home.listChanges(question)),
        resolveKeys: reached((question) => home.resolveKeys(question)),
        charge: reached((question) => home.charge(question)),
        lease: reached((question) => home.lease(question)),
      },
      bytesMax: 4 * 1024 * 1024,
      staleMax,
      lookupsPerSecond: 1_000,
      leases,
      recorder: null,
      status: () => ({ id: "edge_1", kind: "library", version: "1", reports: 0 }),
      onState: () => {},
    });
    const held = this.replica.leases;
    if (held === null) return;
    const spend = held.spend.bind(held);
    held.spend = (charges) => {
      const decision = spend(charges);
      if (decision === undefined) return undefined;
      simulation.decided.here++;
      if (!decision.allowed) simulation.truth.violations.push("a lease denied a call");
      simulation.truth.add(charges, LEASE);
      return decision;
    };
  }

  /** Calls, and does not wait. */
  call(n: number, ratelimits?: readonly NamedCost[]): Promise<Caught> {
    const { decided } = this.#simulation;
    const request: VerificationRequest = {
      key: secretOf(n),
      workspaceId: this.#simulation.home.workspaceId,
      principal: null,
      address: "192.0.2.1",
      requestId: "req_1",
      now: this.clock.now(),
      startedAt: this.clock.monotonic(),
      ...(ratelimits && { ratelimits }),
    };
    try {
      const answer = this.replica.verification.verify(request);
      if (typeof answer === "string") return Promise.resolve(JSON.parse(answer));
      return Promise.resolve(answer).then(
        (text) => {
          const caught: Caught = JSON.parse(text as string);
          if (caught.isOfHome) decided[caught.code === "VALID" ? "atHome" : "denied"]++;
          return caught;
        },
        () => {
          decided.failed++;
          return {};
        },
      );
    } catch {
      decided.failed++;
      return Promise.resolve({});
    }
  }

  /** Calls in every step of 10 ms. */
  async load(n: number, perStep: number, length: Milliseconds): Promise<void> {
    for (let passed = 0; passed < length; passed += 10) {
      for (let i = 0; i < perStep; i++) void this.call(n);
      await this.#simulation.pass(10);
    }
  }
}

function secretOf(n: number): string {
  return `secret_${n}`;
}

describe("leases of a replica", () => {
  it("decide calls of a busy limit here, and return what is left (rule 190)", async () => {
    const simulation = new Simulation();
    const { home, truth, decided } = simulation;
    simulation.setKey(1, keyWith(1, [limitRow("r", 100_000, 60_000)]));
    const edge = await simulation.edge();
    await edge.load(1, 2, 1_000);
    Object.assign(decided, { here: 0, atHome: 0 });
    home.asked.leases = 0;
    await edge.load(1, 2, 10_000);
    assert.equal(decided.here, 2_000);
    assert.equal(decided.atHome, 0);
    assert.ok(home.asked.leases <= 6, `${home.asked.leases} questions`);
    const closed = edge.replica.close();
    await simulation.pass(100);
    await closed;
    const [charge] = chargesOf(simulation.keyAt(1));
    assert.equal(home.limits.used(charge!), truth.allowed);
    assert.equal(truth.used(charge!), truth.allowed);
    assert.deepEqual(truth.violations, []);
    assert.equal(home.limits.lent.granted, home.limits.lent.returned);
  });

  it("are not asked for limits that have none, or are not busy", async () => {
    const simulation = new Simulation();
    const { home, decided } = simulation;
    const busy = limitRow("r", 10_000, 60_000);
    const keys = [
      keyWith(1, [limitRow("small", 99, 60_000)]),
      keyWith(2, [limitRow("short", 10_000, 1_999)]),
      keyWith(3, [limitRow("strict", 10_000, 60_000, { mode: "strict" })]),
      keyWith(4, [limitRow("shadow", 10_000, 60_000, { shadow: 1 })]),
      keyWith(5, [busy, limitRow("small", 50, 60_000)]),
      { ...keyWith(6, [busy]), needs: ["limits", "balance"] },
      { ...keyWith(7, [busy]), needs: ["limits", "plan"] },
      keyWith(8, [busy], { id: "id_1", externalId: "e", meta: null, ratelimits: [limitRow("s", 50, 60_000)] } as never),
    ];
    for (const [i, key] of keys.entries()) simulation.setKey(i + 1, key);
    const edge = await simulation.edge();
    for (let n = 1; n <= keys.length; n++) await edge.load(n, 2, 300);
    simulation.setKey(9, keyWith(9, [busy]));
    for (let i = 0; i < 30; i++) {
      void edge.call(9);
      await simulation.pass(150);
    }
    assert.equal(home.asked.leases, 0);
    assert.equal(decided.here, 0);
    await edge.load(9, 2, 300);
    assert.ok(home.asked.leases > 0);
  });

  it("cover a call with several limits, or it goes home whole (rule 191)", async () => {
    const simulation = new Simulation();
    const { home, truth, decided } = simulation;
    const identity = { id: "id_1", externalId: "e", meta: null, ratelimits: [limitRow("shared", 5_000, 60_000)] };
    simulation.setKey(1, keyWith(1, [limitRow("own", 200, 60_000)], identity as never));
    simulation.setKey(2, keyWith(2, [], identity as never));
    const edge = await simulation.edge();
    for (let i = 0; i < 60; i++) {
      for (let k = 0; k < 5; k++) void edge.call(1);
      for (let k = 0; k < 5; k++) void edge.call(2);
      await simulation.pass(10);
    }
    assert.ok(decided.here > 100 && decided.denied > 0, JSON.stringify(decided));
    void edge.replica.close();
    await simulation.pass(200);
    for (const n of [1, 2])
      for (const charge of chargesOf(simulation.keyAt(n))) assert.equal(home.limits.used(charge), truth.used(charge));
    assert.deepEqual(truth.violations, []);
  });

  it("end with the window of home, and are renewed in the next one", async () => {
    const simulation = new Simulation();
    const { home, truth, decided } = simulation;
    home.trouble.delayMax = 50;
    simulation.setKey(1, keyWith(1, [limitRow("r", 2_000, 2_000)]));
    const edge = await simulation.edge();
    await edge.load(1, 2, 2_000);
    Object.assign(decided, { here: 0, atHome: 0 });
    await edge.load(1, 2, 10_000);
    const share = decided.here / (decided.here + decided.atHome);
    assert.ok(share > 0.9, `${share}`);
    assert.deepEqual(truth.violations, []);
  });

  it("never let calls wait for a renewal, 50 ms away from home", async () => {
    const simulation = new Simulation();
    const { home, decided } = simulation;
    home.trouble.delayMax = 50;
    simulation.setKey(1, keyWith(1, [limitRow("r", 1_000_000, 3_600_000)]));
    const edge = await simulation.edge();
    await edge.load(1, 10, 2_000);
    decided.atHome = 0;
    await edge.load(1, 10, 30_000);
    assert.equal(decided.atHome, 0);
  });

  it("go on while home is away, until they end (rule 193)", async () => {
    const simulation = new Simulation();
    const { home, decided, truth } = simulation;
    simulation.setKey(1, keyWith(1, [limitRow("r", 100_000, 60_000)]));
    const edge = await simulation.edge({ staleMax: 60_000 });
    await edge.load(1, 2, 2_000);
    home.trouble.lost = 1_000;
    Object.assign(decided, { here: 0, atHome: 0, failed: 0 });
    await edge.load(1, 1, 3_000);
    assert.deepEqual([decided.here, decided.failed], [300, 0]);
    await edge.load(1, 1, 10_000);
    const before = decided.here;
    await edge.load(1, 1, 1_000);
    assert.equal(decided.here, before, "after their end");
    home.trouble.lost = 0;
    await edge.load(1, 2, 3_000);
    assert.ok(decided.here > before);
    assert.deepEqual(truth.violations, []);
  });

  it("say what remains with them, and the end of the window by the clock of home (rule 192)", async () => {
    const simulation = new Simulation();
    simulation.setKey(1, keyWith(1, [limitRow("r", 10_000, 60_000)]));
    const edge = await simulation.edge();
    edge.clock.wallError = 5_000_000;
    await edge.load(1, 1, 1_000);
    const { truth } = simulation;
    for (let i = 0; i < 200; i++) {
      const { ratelimits } = await edge.call(1);
      assert.equal(ratelimits![0]!.remaining, 10_000 - truth.allowed);
      assert.equal(ratelimits![0]!.reset, START + 60_000);
      await simulation.pass(10);
    }
  });

  it("are spent by the cost of the call, over several ones, and looked at by a call that names others", async () => {
    const simulation = new Simulation();
    const { home, truth, decided } = simulation;
    simulation.setKey(1, keyWith(1, [limitRow("a", 50_000, 60_000), limitRow("b", 50_000, 60_000, { auto_apply: 0 })]));
    const edge = await simulation.edge();
    const cost = () => 1 + simulation.random.below(40);
    for (let i = 0; i < 500; i++) {
      void edge.call(1, [{ name: "b", cost: cost() }]);
      void edge.call(1, [
        { name: "a", cost: cost() },
        { name: "b", cost: 0 },
      ]);
      await simulation.pass(10);
    }
    assert.ok(decided.here > 500, JSON.stringify(decided));
    void edge.replica.close();
    await simulation.pass(200);
    for (const charge of chargesOf(simulation.keyAt(1), [
      { name: "a", cost: 1 },
      { name: "b", cost: 1 },
    ]))
      assert.equal(home.limits.used(charge), truth.used(charge));
  });

  it("are none with a home of an older release, one that refuses, and where they are switched off (rule 194)", async () => {
    const simulation = new Simulation();
    const { home, decided } = simulation;
    simulation.setKey(1, keyWith(1, [limitRow("r", 100_000, 60_000)]));
    home.lends = false;
    const edge = await simulation.edge();
    await edge.load(1, 2, 3_000);
    assert.equal(home.asked.leases, 1);
    home.lends = true;
    await edge.load(1, 1, 60_000);
    assert.ok(decided.here > 100);
    home.refuses = true;
    await simulation.pass(400);
    const before = decided.here;
    for (let i = 0; i < 10; i++) void edge.call(1);
    assert.equal(decided.here, before);
    assert.equal(edge.replica.leases!.held, 0);
    home.refuses = false;
    const without = await simulation.edge({ leases: false });
    home.asked.leases = 0;
    await edge.replica.close();
    await without.load(1, 3, 1_000);
    assert.equal(home.asked.leases, 0);
  });
});

/** Answers questions about leases with what a test makes of them. */
async function answering(make: (question: LeaseQuestion) => unknown) {
  const simulation = new Simulation();
  const { home } = simulation;
  simulation.setKey(1, keyWith(1, [limitRow("r", 10_000, 60_000)]));
  const asked: LeaseQuestion[] = [];
  home.lease = async (question) => {
    asked.push(question);
    return make(question) as LeaseAnswer;
  };
  return { simulation, edge: await simulation.edge(), asked };
}

describe("leases of a home", () => {
  const grant = { id: "lease_1", amount: 20, remaining: 9_000, reset: START + 60_000, expiresIn: 5_000 };

  it("that make no sense are not used (rule 194)", async () => {
    const answers: unknown[] = [
      ...[-1, 0, 0.5, 1e9, Number.NaN, "20", undefined].map((amount) => ({ ...grant, amount })),
      ...[-1, 1e9, "1", undefined].map((remaining) => ({ ...grant, remaining })),
      ...[-1, "soon", undefined].map((reset) => ({ ...grant, reset })),
      ...[0, -5_000, "1", undefined, Number.NaN].map((expiresIn) => ({ ...grant, expiresIn })),
      ...["", "x".repeat(10_000), 7, undefined].map((id) => ({ ...grant, id })),
      ...["none", 7, [], undefined],
    ];
    for (const answer of answers) {
      const { simulation, edge } = await answering(() => ({ leases: [answer] }));
      await edge.load(1, 2, 300);
      assert.equal(simulation.decided.here, 0, JSON.stringify(answer));
      assert.equal(simulation.decided.failed, 0);
    }
    for (const answer of [undefined, {}, { leases: "none" }, { leases: [] }]) {
      const { simulation, edge, asked } = await answering(() => answer);
      await edge.load(1, 2, 2_000);
      assert.equal(simulation.decided.here, 0, JSON.stringify(answer));
      assert.ok(asked.length <= 60, `${asked.length} questions`);
    }
  });

  it("with more than was asked for, and with the same id, are used once", async () => {
    const { simulation, edge, asked } = await answering(() => ({ leases: Array.from({ length: 5_000 }, () => grant) }));
    await edge.load(1, 2, 3_000);
    assert.equal(edge.replica.leases!.held, 0);
    assert.ok(asked.length > 1);
    const returned = new Set(asked.flatMap(({ leases }) => leases.flatMap(({ returns = [] }) => returns)));
    assert.ok([...returned].every(({ id, amount, spent }) => id === "lease_1" && amount === 20 && spent === 20));
    assert.ok(simulation.decided.here <= 20 * asked.length);
  });

  it("that last for hours end after ten seconds", async () => {
    const { simulation, edge } = await answering(({ leases }) => ({
      leases: leases.map(({ want }) => (want === 0 ? null : { ...grant, amount: want, expiresIn: 1e9 })),
    }));
    await edge.load(1, 2, 200);
    edge.replica.leases!.note = () => {};
    await simulation.pass(9_700);
    assert.equal(edge.replica.leases!.held, 1);
    await simulation.pass(700);
    assert.equal(edge.replica.leases!.held, 0);
  });

  it("are returned with the same numbers until home answers, for a minute at most (rule 190)", async () => {
    let isAway = false;
    const { simulation, edge, asked } = await answering(({ leases }) => {
      if (isAway) throw new HomeUnavailable("lost");
      return { leases: leases.map(({ want }) => (want === 0 ? null : { ...grant, amount: want })) };
    });
    await edge.load(1, 2, 200);
    isAway = true;
    asked.length = 0;
    await simulation.pass(50_000);
    const returned = asked.flatMap(({ leases }) => leases.flatMap(({ returns = [] }) => returns));
    assert.ok(returned.length > 10 && returned.length < 60, `${returned.length} questions`);
    assert.equal(new Set(returned.map((one) => JSON.stringify(one))).size, 1);
    await simulation.pass(20_000);
    asked.length = 0;
    await simulation.pass(10_000);
    assert.equal(asked.length, 0);
    await edge.replica.close();
  });

  it("of 10,000 limits at most are watched, whatever callers ask for (rule 194)", async () => {
    const { simulation, edge, asked } = await answering(({ leases }) => ({ leases: leases.map(() => null) }));
    const leases = edge.replica.leases!;
    const key = (n: number) =>
      ({ planId: null, identity: null, budgets: [], derivation: null, hasBalance: false, concurrency: [], n }) as never;
    const note = (n: number) => {
      const charge = { counter: `key\0pool_${n}\0r`, limit: 1_000, duration: 60_000, cost: 1 };
      const limit = {
        name: "r",
        owner: "key",
        limit: 1_000,
        duration: 60_000,
        mode: "standard",
        shadow: false,
      } as never;
      leases.note(`hash_${n}`, key(n), { charges: [charge], limits: [limit] });
    };
    for (let n = 0; n < 30_000; n++) note(n);
    assert.equal(leases.watched, 10_000);
    for (let n = 0; n < 2_000; n++) for (let i = 0; i < 12; i++) note(n);
    await simulation.pass(400);
    assert.ok(asked.length > 7 && asked.length <= 21, `${asked.length} questions`);
    assert.ok(asked.every((question) => question.leases.length <= 256 && JSON.stringify(question).length < 49_200));
    await simulation.pass(12_000);
    assert.equal(leases.watched, 0);
  });
});

describe("several edges and direct callers of one limit", () => {
  for (const seed of [3, 17, 404, 20261127]) {
    it(`get together what it allows, by seed ${seed} (rule 190)`, async () => {
      const simulation = new Simulation(seed, 2);
      const { clock, random, home, truth, decided } = simulation;
      const shared = { id: "id_1", externalId: "e", meta: null, ratelimits: [limitRow("all", 9_000, 3_000)] } as never;
      const made: (() => ReplicaKey)[] = [
        () => keyWith(0, [limitRow("r", 2_000 + 1_000 * random.below(4), 2_000)]),
        () => keyWith(1, [limitRow("r", 10_000, 5_000 + 1_000 * random.below(2))]),
        () => keyWith(2, [limitRow("r", [90_000, 2_000][random.below(2)]!, 60_000)]),
        () => keyWith(3, [limitRow("own", 4_000, 2_500)], shared),
        () => keyWith(4, [], shared),
        () => keyWith(5, [limitRow("r", 6_000, 4_000), limitRow("strict", 2_000, 4_000, { mode: "strict" })]),
        () =>
          keyWith(6, [
            limitRow("r", 6_000, 2_000),
            limitRow("dark", 500, 2_000, { shadow: [0, 1][random.below(2)]! as 0 }),
          ]),
      ];
      for (const [n, make] of made.entries()) simulation.setKey(n, make());
      const edges: SimulatedEdge[] = [];
      for (let i = 0; i < 3; i++) edges.push(await simulation.edge({ staleMax: [0, 5_000, 0][i]! }));
      const suspended = new Map<SimulatedEdge, { until: number; isLid: boolean }>();
      /** How busy each key is, by what happens at home and at the edges. */
      let busy = { edges: 5, direct: 1 };
      for (let step = 0; step < 3_500; step++) {
        const chance = random.below(1_000);
        const i = random.below(edges.length);
        const edge = edges[i]!;
        if (chance < 20) busy = { edges: [0, 2, 8, 20][random.below(4)]!, direct: [0, 0, 1, 5][random.below(4)]! };
        // All that is left at once, so that whatever is spent beyond it shows.
        else if (chance < 35) simulation.exhaust(random.below(made.length));
        else if (chance < 50) home.trouble.delayMax = [0, 0, 10, 50, 400, 2_500][random.below(6)]!;
        else if (chance < 54) home.trouble.lost = [0, 0, 0, 0, 150, 1_000][random.below(6)]!;
        else if (chance < 57) home.trouble.repeated = [0, 300][random.below(2)]!;
        else if (chance < 60 && edge.clock.isRunning) {
          edge.clock.suspend();
          suspended.set(edge, { until: clock.monotonic() + random.below(4_000), isLid: random.below(2) === 0 });
        } else if (chance < 62) {
          edge.clock.kill();
          suspended.delete(edge);
          const next = new SimulatedEdge(simulation, {});
          void next.replica.start().catch(() => next.clock.kill());
          edges[i] = next;
        } else if (chance < 64) home.limits.restart();
        else if (chance < 68) edge.clock.wallError += random.below(9_000) - 6_000;
        else if (chance < 71) {
          const n = [0, 1, 2, 6][random.below(4)]!;
          simulation.setKey(n, made[n]!());
        } else if (chance < 72 && edge.clock.isRunning) {
          void edge.replica.close();
          const next = new SimulatedEdge(simulation, {});
          void next.replica.start().catch(() => next.clock.kill());
          edges[i] = next;
        }
        for (const [one, { until, isLid }] of suspended) {
          if (clock.monotonic() < until) continue;
          suspended.delete(one);
          one.clock.resume(isLid);
        }
        for (const one of edges) {
          if (!one.clock.isRunning) continue;
          for (let k = random.below(busy.edges + 1); k > 0; k--)
            void one.call([0, 0, 1, 2, 3, 4, 5, 6][random.below(8)]!);
        }
        for (let k = random.below(busy.direct + 1); k > 0; k--)
          home.limits.charge(simulation.keyAt(random.below(made.length)));
        clock.advance(1 + random.below(18));
        await simulation.settle();
      }
      assert.deepEqual(truth.violations.slice(0, 5), []);
      const { lent } = home.limits;
      assert.ok(decided.here > 3_000 && lent.returned > 100, JSON.stringify({ decided, lent }));
    });
  }

  for (const seed of [5, 99]) {
    it(`are charged exactly for what they were allowed, when each lease was returned, by seed ${seed} (rule 191)`, async () => {
      const simulation = new Simulation(seed);
      const { random, home, truth, decided } = simulation;
      home.trouble.delayMax = 30;
      const isShadow = () => ({ shadow: [0, 1][random.below(2)]! as 0 });
      const make = (n: number) =>
        keyWith(n, [
          limitRow("a", [50_000, 70_000][random.below(2)]!, 600_000),
          limitRow("b", 60_000, 600_000, isShadow()),
        ]);
      for (let n = 0; n < 3; n++) simulation.setKey(n, make(n));
      const edges = [await simulation.edge(), await simulation.edge()];
      for (let step = 0; step < 800; step++) {
        if (step % 40 === 0) simulation.setKey(step % 3, make(step % 3));
        for (const edge of edges) for (let k = random.below(6); k > 0; k--) void edge.call(random.below(3));
        if (step % 7 === 0) home.limits.charge(simulation.keyAt(random.below(3)));
        await simulation.pass(10);
      }
      const closed = edges.map((edge) => edge.replica.close());
      await simulation.pass(500);
      await Promise.all(closed);
      assert.deepEqual(truth.violations, []);
      assert.ok(decided.here > 500, JSON.stringify(decided));
      for (let n = 0; n < 3; n++) {
        const [charge] = chargesOf(keyWith(n, [limitRow("a", 50_000, 600_000)]));
        assert.equal(home.limits.used(charge!), truth.used(charge!), `key ${n}`);
      }
    });
  }
});
