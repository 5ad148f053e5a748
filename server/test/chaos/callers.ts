/** What the clients of a run do, and how they write it down. */
import { setTimeout } from "node:timers/promises";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { alphanumeric, type Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { Client, type Settled, type Target } from "./client.ts";
import { EdgeCallers } from "./edge-callers.ts";
import type { Fleet } from "./fleet.ts";
import { Holders } from "./holders.ts";
import {
  admit,
  closeSpend,
  demand,
  ENDLESS_MS,
  type Journal,
  type JournalBalance,
  type JournalBudget,
  type JournalChange,
  type JournalKey,
  type JournalLimit,
  newBalance,
  newLimit,
  recordAddition,
  recordSpend,
  sendAddition,
  sendSpend,
} from "./journal.ts";

const NAMESPACE = "chaos";
/** Pools whose balance is known exactly: all their calls have an Idempotency-Key, and it never runs out. */
const EXACT_POOLS = 6;
const POOLS = 14;
const EXACT_INITIAL = 10_000_000;
/** Calls that are sent together to budgets that run out. */
const CROWD = 4;
/** Cost of a call beyond what a limit allows, in a burst. */
const BURST_EXCESS = 2;
/** How long a client waits after an answer, and after a failure, in ms. */
const PAUSE_MS = [15, 60] as const;
const FAILED_MS = [200, 800] as const;
/** How long a client that deletes a key waits until it is known everywhere, in ms. */
const KNOWN_MS = 500;
/** How long a follower waits after a page without events, in ms. */
const FOLLOW_MS = [200, 500] as const;

export interface CallersOptions {
  fleet: Fleet;
  journal: Journal;
  seed: number;
  /** When a revoked key is asked for again, in ms after the answer to its deletion. */
  probesMs: readonly number[];
  /** The same at edges. */
  edgeProbesMs: readonly number[];
  /** How many times a limit its nodes may admit together. */
  limitFactor: number;
  /** The number of clients, as a factor. */
  load: number;
}

/** A key, and the budgets that its calls are charged to. */
interface Payer {
  key: string;
  budgets: JournalBudget[];
  /** Whether none of them runs out, so that the outcome of each call becomes known. */
  isExact: boolean;
}

/** Many clients that call until they are told to stop. */
export class Callers {
  readonly #options: CallersOptions;
  readonly #target: Target;
  readonly #nodes: Target[];
  readonly #edges: Target[];
  readonly #clients: Client[] = [];
  readonly #loops: Promise<void>[] = [];
  /** Verifications of deleted keys that are still to come. */
  readonly #probes = new Set<Promise<unknown>>();
  /** Limits of seconds, and ones that are charged until they are used up. */
  readonly #short: JournalLimit[] = [];
  readonly #endless: JournalLimit[] = [];
  readonly #payers: Payer[] = [];
  readonly #holders: Holders;
  readonly #edgeCallers: EdgeCallers;
  #bursts = 0;
  #isOver = false;
  #apiId = "";

  constructor(options: CallersOptions) {
    this.#options = options;
    const { fleet } = options;
    this.#target = { port: fleet.balancerPort };
    this.#nodes = fleet.nodes.map(({ port, index }) => ({ port, node: index }));
    this.#edges = fleet.edges.map(({ port, index }) => ({ port, edge: index }));
    this.#holders = new Holders(options.journal, { target: this.#target, nodes: this.#nodes });
    this.#edgeCallers = new EdgeCallers(options.journal, { target: this.#target, edges: this.#edges });
  }

  /** Makes what the clients share, before the first fault. */
  async prepare(): Promise<void> {
    const { journal, seed } = this.#options;
    const { client } = this.#newClient(seed);
    const target = this.#nodes[0]!;
    this.#apiId = (await client.settle(target, "apis.createApi", { name: "chaos" })).data.apiId;
    for (let i = 0; i < POOLS; i++) {
      const isExact = i < EXACT_POOLS;
      const mode = i % 4 === 1 ? "strict" : "standard";
      const limit = isExact || i % 2 === 0 ? undefined : newLimit(`pool${i}`, 100 * i, ENDLESS_MS, mode);
      const initial = isExact ? EXACT_INITIAL : 200;
      const { data } = await client.settle(target, "keys.createKey", {
        apiId: this.#apiId,
        credits: { remaining: initial },
        ...(limit && {
          ratelimits: [{ name: "spends", limit: limit.limit, duration: limit.duration, mode, autoApply: true }],
        }),
      });
      journal.pools.push({ ...newBalance(data.keyId, initial, isExact), key: data.key, limit });
      if (limit) journal.limits.push(limit);
    }
    await this.#prepareBudgets(client, target);
    await this.#holders.prepare(client, this.#apiId);
    await this.#edgeCallers.prepare(client, this.#apiId);
    for (const [limit, duration] of [
      [10, 2_000],
      [40, 5_000],
      [100, 10_000],
    ] as const) {
      this.#short.push(newLimit(`short${duration}`, limit, duration));
      this.#short.push(newLimit(`strict${duration}`, limit, duration, "strict"));
    }
    journal.limits.push(...this.#short);
    await client.settle(target, "ratelimits.limit", {
      namespace: NAMESPACE,
      identifier: "first",
      limit: 1,
      duration: 1_000,
    });
  }

  start(): void {
    const kinds = [
      { count: 26, act: (client: Client, random: Random, keys: JournalKey[]) => this.#own(client, random, keys) },
      { count: 26, act: (client: Client, random: Random) => this.#spend(client, random) },
      { count: 12, act: (client: Client, random: Random) => this.#spendBudgets(client, random) },
      { count: 8, act: (client: Client, random: Random) => this.#holders.act(client, random) },
      { count: 8, act: (client: Client, random: Random) => this.#count(client, random) },
      { count: 4, act: (client: Client, random: Random) => this.#burst(client, random) },
      ...(this.#edges.length === 0
        ? []
        : [
            { count: 8, act: (client: Client, random: Random) => this.#edgeCallers.verify(client, random) },
            { count: 12, act: (client: Client, random: Random) => this.#edgeCallers.spend(client, random) },
            { count: 2, act: (client: Client, random: Random) => this.#edgeCallers.crowd(client, random) },
            { count: 2, act: (client: Client) => this.#edgeCallers.crowdLong(client) },
          ]),
    ];
    for (const { count, act } of kinds) {
      for (let i = 0; i < Math.ceil(count * this.#options.load); i++) {
        const { client, random } = this.#newClient(this.#options.seed + 1_000 * (this.#clients.length + 1));
        const keys: JournalKey[] = [];
        const loop = async () => {
          while (!this.#isOver) {
            await act(client, random, keys);
            // Calls that are rejected at once would take the time of the machine from those that prove something.
            const [from, to] = client.hasFailed ? FAILED_MS : PAUSE_MS;
            await client.pause(from, to);
          }
        };
        this.#loops.push(loop());
      }
    }
    this.#loops.push(this.#followUntilOver());
  }

  /** Ends the clients. Calls without a clear outcome are repeated for this time. */
  async stop(settleMs: number): Promise<void> {
    this.#isOver = true;
    for (const client of this.#clients) client.deadline = systemClock.monotonic() + settleMs;
    await Promise.all(this.#loops);
    await Promise.all(this.#probes);
  }

  /** Follows the events until it has read this one, or for this time. */
  async followUntil(eventId: string | undefined, waitMs: number): Promise<void> {
    const { followed } = this.#options.journal;
    const { client } = this.#newClient(this.#options.seed - 1);
    const deadline = systemClock.monotonic() + waitMs;
    while (eventId !== undefined && !followed.includes(eventId) && systemClock.monotonic() < deadline) {
      if ((await this.#follow(client)) === 0) await client.pause(...FOLLOW_MS);
    }
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  #newClient(seed: number): { client: Client; random: Random } {
    const random = seededRandom(seed);
    const client = new Client(this.#options.journal, random);
    this.#clients.push(client);
    return { client, random };
  }

  /** Creates, changes, verifies and deletes keys. */
  async #own(client: Client, random: Random, keys: JournalKey[]): Promise<void> {
    const { journal } = this.#options;
    const step = random.below(100);
    const entry = keys.length > 0 ? keys[random.below(keys.length)]! : undefined;
    if (!entry || (step < 20 && keys.length < 60)) {
      const marker = alphanumeric(random, 16);
      const made: JournalKey = { marker, name: marker, openNames: [], deletion: "none", changes: [] };
      journal.keys.push(made);
      const body = { apiId: this.#apiId, name: marker, meta: { marker } };
      const { status, data } = await this.#change(made, "created", client, "keys.createKey", body);
      if (status !== 200) return;
      made.keyId = data.keyId;
      made.key = data.key;
      keys.push(made);
    } else if (step < 40) {
      const name = alphanumeric(random, 12);
      const given = { name, meta: { marker: entry.marker, change: alphanumeric(random, 12) } };
      const kind = (["name", "meta", "meta,name"] as const)[random.below(3)]!;
      const isNamed = kind !== "meta";
      const body = {
        keyId: entry.keyId,
        ...(isNamed && { name }),
        ...(kind !== "name" && { meta: given.meta }),
      };
      if (isNamed) entry.openNames.push(name);
      const answer = await this.#change(entry, kind, client, "keys.updateKey", body, isNamed ? name : undefined);
      if (answer.status !== 200 || !isNamed) return;
      if (answer.attempts === 1) entry.openNames.splice(entry.openNames.indexOf(name), 1);
      entry.name = name;
    } else if (step < 57) {
      keys.splice(keys.indexOf(entry), 1);
      // Nodes and edges have the key in memory, or ask for it. Some edges ask for it while it is deleted.
      const isEarly = random.below(2) === 0;
      const ask = (places: readonly Target[]) =>
        Promise.all(places.map((place) => client.once(place, "keys.verifyKey", { key: entry.key })));
      const known = ask(isEarly ? [...this.#nodes, ...this.#edges] : this.#nodes);
      this.#await(known);
      // One that is frozen is not waited for.
      await Promise.race([known, setTimeout(KNOWN_MS)]);
      if (!isEarly) {
        this.#await(ask(this.#edges));
        await client.pause(0, KNOWN_MS);
      }
      entry.deletion = "open";
      const answer = await this.#change(entry, "deleted", client, "keys.deleteKey", { keyId: entry.keyId });
      if (answer.status !== 200) return;
      entry.deletion = "acknowledged";
      this.#probe(client, entry, answer);
    } else {
      const answer = await client.once(this.#anyPlace(random), "keys.verifyKey", { key: entry.key });
      if (answer.status !== 200) return;
      journal.knownVerifications++;
      if (answer.data.code !== "VALID") journal.denials.push(answer);
    }
  }

  /** Makes a change of a key, and writes it down. */
  async #change(
    entry: JournalKey,
    kind: string,
    client: Client,
    operation: string,
    body: object,
    name?: string,
  ): Promise<Settled> {
    const change: JournalChange = { kind, isAcknowledged: false, attempts: 0, description: "" };
    if (name !== undefined) change.name = name;
    entry.changes.push(change);
    const answer = await client.settle(this.#target, operation, body, { goneIsDone: kind === "deleted" });
    change.attempts = answer.attempts;
    change.isAcknowledged = answer.status === 200;
    change.description = describeChange(kind, name, answer);
    return answer;
  }

  /** Verifies a deleted key at every node and edge, at some times after the answer to its deletion. */
  #probe(client: Client, { key, keyId }: JournalKey, deletion: Settled): void {
    const { journal, probesMs, edgeProbesMs } = this.#options;
    const revokedAt = deletion.answeredAt;
    const probe = async (
      place: Target,
      times: readonly number[],
      note: (sentAt: number, isAccepted: boolean) => void,
    ) => {
      for (const ms of times) {
        const wait = revokedAt + ms - systemClock.monotonic();
        if (wait > 0) await setTimeout(wait);
        const { status, data, sentAt } = await client.once(place, "keys.verifyKey", { key });
        if (status === 200) note(sentAt, data.code === "VALID");
      }
    };
    for (const node of this.#nodes) {
      const isOwn = deletion.attempts === 1 && deletion.node === node.node;
      const of = { keyId: keyId!, node: node.node!, revokedAt, isOwn };
      const note = (sentAt: number, isAccepted: boolean) => journal.revoked.push({ ...of, sentAt, isAccepted });
      this.#await(probe(node, probesMs, note));
    }
    for (const place of this.#edges) {
      const of = { keyId: keyId!, edge: place.edge!, revokedAt };
      const note = (sentAt: number, isAccepted: boolean) => journal.edges.revoked.push({ ...of, sentAt, isAccepted });
      this.#await(probe(place, edgeProbesMs, note));
    }
  }

  /** Lets the run wait for this before it ends. */
  #await(task: Promise<unknown>): void {
    this.#probes.add(task);
    void task.finally(() => this.#probes.delete(task));
  }

  /** The load balancer, a node or an edge. */
  #anyPlace(random: Random): Target {
    const places = [this.#nodes, this.#edges, [this.#target]][random.below(3)]!;
    return places[random.below(places.length)] ?? this.#target;
  }

  /** The load balancer, or an edge. */
  #behindAnEdge(random: Random): Target {
    return (random.below(3) === 0 && this.#edges[random.below(this.#edges.length)]) || this.#target;
  }

  /** Spends credits, with and without Idempotency-Key, and adds some. */
  async #spend(client: Client, random: Random): Promise<void> {
    const { journal } = this.#options;
    const isExact = random.below(100) < 75;
    const pool = journal.pools[isExact ? random.below(EXACT_POOLS) : EXACT_POOLS + random.below(POOLS - EXACT_POOLS)]!;
    const step = random.below(100);
    if (step < 8) {
      await this.#add(client, random, pool, "keys.updateCredits", { keyId: pool.id });
      return;
    }
    const cost = random.below(6);
    const body = { key: pool.key, credits: { cost } };
    sendSpend(pool, cost);
    const isRepeated = isExact || step < 80;
    const place = this.#behindAnEdge(random);
    const answer = isRepeated
      ? await client.settle(place, "keys.verifyKey", body)
      : { ...(await client.once(place, "keys.verifyKey", body)), attempts: 1 };
    const { status, node, data, attempts } = answer;
    // An earlier attempt can be executed after a later one was rejected, which left no record.
    const isFinal = status === 200 && (attempts === 1 || data.code === "VALID");
    // The outcome of a call without Idempotency-Key is known from an answer of a node: a problem means that nothing was spent.
    const isKnown = isFinal || (node !== undefined && status >= 400 && !isRepeated);
    if (isKnown) closeSpend(pool, cost);
    if (status !== 200) return;
    const { limit } = pool;
    const state = data.ratelimits?.[0];
    if (limit) {
      limit.calls++;
      if (state && (data.code === "VALID" || state.exceeded)) demand(limit, 1, { ...answer, reset: state.reset });
    }
    if (data.code === "NOT_FOUND") journal.denials.push(answer);
    if (data.code !== "VALID") return;
    recordSpend(pool, cost, data.credits);
    if (limit) admit(limit, 1, { ...answer, reset: state.reset });
  }

  /** Adds credits to a balance. */
  async #add(client: Client, random: Random, balance: JournalBalance, operation: string, of: object): Promise<void> {
    const value = 10 + random.below(40);
    sendAddition(balance, value);
    const body = { ...of, operation: "increment", value };
    const { status, data } = await client.settle(this.#target, operation, body);
    if (status === 200) recordAddition(balance, value, data.remaining);
  }

  /** Makes trees of budgets, and keys that spend from them. */
  async #prepareBudgets(client: Client, target: Target): Promise<void> {
    const { journal } = this.#options;
    const budget = async (initial: number, isExact: boolean, more: object = {}): Promise<JournalBudget> => {
      const body = { name: "chaos", remaining: initial, ...more };
      const { budgetId } = (await client.settle(target, "budgets.createBudget", body)).data;
      const made = { ...newBalance(budgetId, initial, isExact), isDenying: !("onEmpty" in more), refused: 0 };
      journal.budgets.push(made);
      return made;
    };
    const payer = async (chain: JournalBudget[], owned: JournalBudget[] = []): Promise<void> => {
      const externalId = owned.length === 0 ? undefined : `owner-of-${owned[0]!.id}`;
      if (externalId) {
        await client.settle(target, "identities.createIdentity", { externalId, budgetId: owned[0]!.id });
      }
      const { data } = await client.settle(target, "keys.createKey", {
        apiId: this.#apiId,
        budgetId: chain[0]!.id,
        ...(externalId && { externalId }),
      });
      this.#payers.push({ key: data.key, budgets: [...chain, ...owned], isExact: chain[0]!.moves !== undefined });
    };
    // Two roots that calls charge in opposite order, each with two levels below it.
    const roots = [await budget(EXACT_INITIAL, true), await budget(EXACT_INITIAL, true)];
    for (const [i, root] of roots.entries()) {
      const team = await budget(EXACT_INITIAL, true, { parentId: root.id });
      const user = await budget(EXACT_INITIAL, true, { parentId: team.id });
      await payer([user, team, root]);
      await payer([team, root], [roots[1 - i]!]);
    }
    // Roots that run out, below one that only counts.
    const watched = await budget(0, false, { onEmpty: "allow" });
    for (const initial of [30, 60]) {
      const scarce = await budget(initial, false, { parentId: watched.id });
      for (let i = 0; i < 2; i++) {
        await payer([await budget(EXACT_INITIAL, false, { parentId: scarce.id }), scarce, watched]);
      }
    }
  }

  /** Spends from several budgets at once, and adds credits to one. */
  async #spendBudgets(client: Client, random: Random): Promise<void> {
    const isExact = random.below(100) < 60;
    const payers = this.#payers.filter((payer) => payer.isExact === isExact);
    const { key, budgets } = payers[random.below(payers.length)]!;
    if (random.below(100) < 8) {
      const budget = budgets[random.below(budgets.length)]!;
      await this.#add(client, random, budget, "budgets.updateCredits", { budgetId: budget.id });
      return;
    }
    // Together, so that nodes that each believe in the last credits would overspend them.
    const calls = Array.from({ length: isExact ? 1 : CROWD }, () =>
      this.#spendBudget(client, { key, budgets, place: this.#behindAnEdge(random) }, random.below(6)),
    );
    await Promise.all(calls);
  }

  async #spendBudget(
    client: Client,
    { key, budgets, place }: Pick<Payer, "key" | "budgets"> & { place: Target },
    cost: number,
  ): Promise<void> {
    const { journal } = this.#options;
    for (const budget of budgets) sendSpend(budget, cost);
    const answer = await client.settle(place, "keys.verifyKey", { key, credits: { cost } });
    const { status, data, attempts } = answer;
    if (status !== 200) return;
    // An earlier attempt can be executed after a later one was rejected, which left no record.
    const isCharged = data.code === "VALID";
    if (isCharged || attempts === 1) for (const budget of budgets) closeSpend(budget, cost);
    if (data.code === "NOT_FOUND") journal.denials.push(answer);
    const told = new Map<string, { remaining: number; exceeded: boolean }>();
    for (const state of data.budgets ?? []) told.set(state.budgetId, state);
    for (const budget of budgets) {
      const state = told.get(budget.id);
      if (isCharged) recordSpend(budget, cost, state?.remaining ?? Number.NaN);
      else if (state?.exceeded) budget.refused++;
    }
  }

  /** Charges limits: ones that never reset, and ones of seconds, in both modes. */
  async #count(client: Client, random: Random): Promise<void> {
    const limit = this.#chooseLimit(random);
    const isMulti = random.below(10) === 0;
    const entry = ({ name, limit, duration, mode }: JournalLimit, cost: number) => ({
      namespace: NAMESPACE,
      identifier: name,
      limit,
      duration,
      mode,
      cost,
    });
    const cost = 1 + random.below(3);
    const second = isMulti ? this.#chooseLimit(random) : undefined;
    const charged = second && second !== limit ? [limit, second] : [limit];
    for (const one of charged) one.calls++;
    const [operation, body] = isMulti
      ? (["ratelimits.multiLimit", charged.map((one) => entry(one, cost))] as const)
      : (["ratelimits.limit", entry(limit, cost)] as const);
    const place = this.#behindAnEdge(random);
    const answer =
      random.below(3) === 0 ? await client.settle(place, operation, body) : await client.once(place, operation, body);
    if (answer.status !== 200) return;
    const isAdmitted: boolean = answer.data.success ?? answer.data.passed;
    for (const [i, one] of charged.entries()) {
      const { reset, passed = isAdmitted } = answer.data.limits?.[i] ?? answer.data;
      if (isAdmitted || !passed) demand(one, cost, { ...answer, reset });
      if (isAdmitted) admit(one, cost, { ...answer, reset });
    }
  }

  /** Sends more calls at once to a new counter, at several nodes, than the limit and the policy admit. */
  async #burst(client: Client, random: Random): Promise<void> {
    const { journal, limitFactor } = this.#options;
    const number = this.#bursts++;
    const limit = newLimit(`burst${number}`, 1 + random.below(4), ENDLESS_MS, number % 3 === 0 ? "strict" : "standard");
    journal.limits.push(limit);
    const { name: identifier, duration, mode } = limit;
    const body = { namespace: NAMESPACE, identifier, limit: limit.limit, duration, mode, cost: 1 };
    const calls = Array.from({ length: limit.limit * limitFactor + BURST_EXCESS }, async () => {
      const answer = await client.once(this.#anyPlace(random), "ratelimits.limit", body);
      limit.calls++;
      if (answer.status !== 200) return;
      const { success, reset } = answer.data;
      demand(limit, 1, { ...answer, reset });
      if (success) admit(limit, 1, { ...answer, reset });
    });
    await Promise.all(calls);
  }

  /** Follows the events as a program does that must not miss one. */
  async #followUntilOver(): Promise<void> {
    const { client } = this.#newClient(this.#options.seed - 1);
    while (!this.#isOver) {
      await this.#follow(client);
      await client.pause(...FOLLOW_MS);
    }
  }

  /** Reads the next events, and returns how many there were. */
  async #follow(client: Client): Promise<number> {
    const { followed } = this.#options.journal;
    const after = followed.at(-1);
    const { status, data } = await client.once(this.#target, "events.listEvents", after === undefined ? {} : { after });
    if (status !== 200) return 0;
    for (const { id } of data) followed.push(id);
    return data.length;
  }

  /** Half of the calls go to one of the last endless counters, which are replaced when they were called often. */
  #chooseLimit(random: Random): JournalLimit {
    const { limits } = this.#options.journal;
    const short = this.#short;
    if (random.below(2) === 0) return short[random.below(short.length)]!;
    const endless = this.#endless;
    const last = endless.at(-1);
    if (!last || last.calls > 2 * last.limit) {
      const mode = endless.length % 3 === 0 ? "strict" : "standard";
      const made = newLimit(`endless${endless.length}`, 10 + random.below(60), ENDLESS_MS, mode);
      limits.push(made);
      endless.push(made);
      return made;
    }
    return endless[Math.max(0, endless.length - 1 - random.below(6))]!;
  }
}

function describeChange(
  kind: string,
  name: string | undefined,
  { sentAt, answeredAt, attempts, node }: Settled,
): string {
  const [from, to] = [sentAt, answeredAt].map((at) => new Date(performance.timeOrigin + at).toISOString());
  return `${kind} ${name ?? ""}, sent ${from}, acknowledged ${to} by node ${node}, attempt ${attempts}`;
}
