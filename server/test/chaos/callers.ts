/** What the clients of a run do, and how they write it down. */
import { setTimeout } from "node:timers/promises";
import { systemClock } from "../../src/clock/system.ts";
import { alphanumeric, type Random } from "../../src/random/random.ts";
import { seededRandom } from "../../src/random/seeded.ts";
import { Client, type Settled, type Target } from "./client.ts";
import type { Fleet } from "./fleet.ts";
import type { Journal, JournalKey, JournalLimit } from "./journal.ts";

const DAY_MS = 86_400_000;
/** A window that does not end within the next day: its counter never passes its limit in the whole run. */
const ENDLESS_MS = [30, 29, 28].map((days) => days * DAY_MS).find((ms) => ms - (systemClock.now() % ms) > DAY_MS)!;
const NAMESPACE = "chaos";

export interface CallersOptions {
  fleet: Fleet;
  journal: Journal;
  seed: number;
  /** When a revoked key is asked for again, in ms after the answer to its deletion. */
  probesMs: readonly number[];
}

/** Many clients that call until they are told to stop. */
export class Callers {
  readonly #options: CallersOptions;
  readonly #target: Target;
  readonly #nodes: Target[];
  readonly #clients: Client[] = [];
  readonly #loops: Promise<void>[] = [];
  /** Verifications of deleted keys that are still to come. */
  readonly #probes = new Set<Promise<void>>();
  #isOver = false;
  #apiId = "";

  constructor(options: CallersOptions) {
    this.#options = options;
    const { fleet } = options;
    this.#target = { port: fleet.balancerPort };
    this.#nodes = fleet.nodes.map(({ port, index }) => ({ port, node: index }));
  }

  /** Makes what the clients share, before the first fault. */
  async prepare(): Promise<void> {
    const { journal, seed } = this.#options;
    const { client } = this.#newClient(seed);
    const target = this.#nodes[0]!;
    this.#apiId = (await client.settle(target, "apis.createApi", { name: "chaos" })).data.apiId;
    for (let i = 0; i < 10; i++) {
      const mode = i % 4 === 1 ? "strict" : "standard";
      const limit = i % 2 === 0 ? undefined : newLimit(`pool${i}`, 400 + 100 * i, ENDLESS_MS, mode);
      const initial = 200;
      const { data } = await client.settle(target, "keys.createKey", {
        apiId: this.#apiId,
        credits: { remaining: initial },
        ...(limit && {
          ratelimits: [{ name: "spends", limit: limit.limit, duration: limit.duration, mode, autoApply: true }],
        }),
      });
      const { keyId, key } = data;
      journal.pools.push({ keyId, key, initial, spent: 0, added: 0, openSpent: 0, openAdded: 0, limit });
      if (limit) journal.limits.push(limit);
    }
    for (const [limit, duration] of [
      [10, 2_000],
      [40, 5_000],
      [100, 10_000],
    ] as const) {
      journal.limits.push(newLimit(`short${duration}`, limit, duration));
      journal.limits.push(newLimit(`strict${duration}`, limit, duration, "strict"));
    }
    await client.settle(target, "ratelimits.limit", {
      namespace: NAMESPACE,
      identifier: "first",
      limit: 1,
      duration: 1_000,
    });
  }

  start(): void {
    const kinds = [
      { count: 8, act: (client: Client, random: Random, keys: JournalKey[]) => this.#own(client, random, keys) },
      { count: 14, act: (client: Client, random: Random) => this.#spend(client, random) },
      { count: 14, act: (client: Client, random: Random) => this.#count(client, random) },
    ];
    for (const { count, act } of kinds) {
      for (let i = 0; i < count; i++) {
        const { client, random } = this.#newClient(this.#options.seed + 1_000 * (this.#clients.length + 1));
        const keys: JournalKey[] = [];
        const loop = async () => {
          while (!this.#isOver) {
            await act(client, random, keys);
            await client.pause(15, 60);
          }
        };
        this.#loops.push(loop());
      }
    }
  }

  /** Ends the clients. Calls without a clear outcome are repeated for this time. */
  async stop(settleMs: number): Promise<void> {
    this.#isOver = true;
    for (const client of this.#clients) client.deadline = systemClock.monotonic() + settleMs;
    await Promise.all(this.#loops);
    await Promise.all(this.#probes);
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
    if (!entry || (step < 10 && keys.length < 60)) {
      const marker = alphanumeric(random, 16);
      const made: JournalKey = { marker, name: marker, openNames: [], deletion: "none", history: [] };
      journal.keys.push(made);
      const body = { apiId: this.#apiId, name: marker, meta: { marker } };
      const { status, data } = await client.settle(this.#target, "keys.createKey", body);
      if (status !== 200) return;
      journal.acknowledged++;
      made.keyId = data.keyId;
      made.key = data.key;
      keys.push(made);
    } else if (step < 25) {
      const name = alphanumeric(random, 12);
      entry.openNames.push(name);
      const answer = await client.settle(this.#target, "keys.updateKey", { keyId: entry.keyId, name });
      if (answer.status !== 200) return;
      entry.history.push(describeChange(name, answer));
      if (answer.attempts === 1) entry.openNames.splice(entry.openNames.indexOf(name), 1);
      journal.acknowledged++;
      entry.name = name;
    } else if (step < 33) {
      keys.splice(keys.indexOf(entry), 1);
      // Every node has the key in memory, or asks for it.
      await Promise.all(this.#nodes.map((node) => client.once(node, "keys.verifyKey", { key: entry.key })));
      entry.deletion = "open";
      const { status } = await client.settle(
        this.#target,
        "keys.deleteKey",
        { keyId: entry.keyId },
        { goneIsDone: true },
      );
      if (status !== 200) return;
      journal.acknowledged++;
      entry.deletion = "acknowledged";
      this.#probe(client, entry, systemClock.monotonic());
    } else {
      const target = random.below(2) === 0 ? this.#target : this.#nodes[random.below(this.#nodes.length)]!;
      const answer = await client.once(target, "keys.verifyKey", { key: entry.key });
      if (answer.status !== 200) return;
      journal.knownVerifications++;
      if (answer.data.code !== "VALID") journal.denials.push(answer);
    }
  }

  /** Verifies a deleted key at every node, at some times after the answer to its deletion. */
  #probe(client: Client, { key, keyId }: JournalKey, revokedAt: number): void {
    const { journal, probesMs } = this.#options;
    for (const node of this.#nodes) {
      const probing = (async () => {
        for (const ms of probesMs) {
          const wait = revokedAt + ms - systemClock.monotonic();
          if (wait > 0) await setTimeout(wait);
          const { status, data, sentAt } = await client.once(node, "keys.verifyKey", { key });
          if (status !== 200) continue;
          const isAccepted = data.code === "VALID";
          journal.revoked.push({ keyId: keyId!, node: node.node!, revokedAt, sentAt, isAccepted });
        }
      })();
      this.#probes.add(probing);
      void probing.finally(() => this.#probes.delete(probing));
    }
  }

  /** Spends credits, with and without Idempotency-Key, and adds some. */
  async #spend(client: Client, random: Random): Promise<void> {
    const { journal } = this.#options;
    const pool = journal.pools[random.below(journal.pools.length)]!;
    const step = random.below(100);
    if (step < 8) {
      const value = 10 + random.below(40);
      pool.openAdded += value;
      const body = { keyId: pool.keyId, operation: "increment", value };
      const { status } = await client.settle(this.#target, "keys.updateCredits", body);
      if (status !== 200) return;
      pool.openAdded -= value;
      pool.added += value;
      return;
    }
    const cost = random.below(6);
    const body = { key: pool.key, credits: { cost } };
    pool.openSpent += cost;
    const isRepeated = step < 80;
    const answer = isRepeated
      ? await client.settle(this.#target, "keys.verifyKey", body)
      : await client.once(this.#target, "keys.verifyKey", body);
    // The outcome of a call without Idempotency-Key is known from an answer of the service: a problem means that nothing
    // was spent.
    const isKnown = answer.status === 200 || (answer.node !== undefined && answer.status >= 400 && !isRepeated);
    if (isKnown) pool.openSpent -= cost;
    if (answer.status !== 200) return;
    if (pool.limit) pool.limit.calls++;
    if (answer.data.code === "NOT_FOUND") journal.denials.push(answer);
    if (answer.data.code !== "VALID") return;
    pool.spent += cost;
    journal.spends += cost;
    if (pool.limit) admit(pool.limit, 1, answer);
  }

  /** Charges limits: ones that never reset, and ones of seconds, in both modes. */
  async #count(client: Client, random: Random): Promise<void> {
    const limit = this.#chooseLimit(random);
    const isMulti = random.below(10) === 0;
    const entry = ({ name, limit, duration, mode }: JournalLimit, cost: number) => ({
      ...{ namespace: NAMESPACE, identifier: name, limit, duration, mode, cost },
    });
    const cost = 1 + random.below(3);
    const second = isMulti ? this.#chooseLimit(random) : undefined;
    const charged = second && second !== limit ? [limit, second] : [limit];
    for (const one of charged) one.calls++;
    const [operation, body] = isMulti
      ? (["ratelimits.multiLimit", charged.map((one) => entry(one, cost))] as const)
      : (["ratelimits.limit", entry(limit, cost)] as const);
    const answer =
      random.below(3) === 0
        ? await client.settle(this.#target, operation, body)
        : await client.once(this.#target, operation, body);
    if (answer.status !== 200) return;
    if (answer.data.success ?? answer.data.passed) for (const one of charged) admit(one, cost, answer);
  }

  /** Half of the calls go to one of the last endless counters, which are replaced when they were called often. */
  #chooseLimit(random: Random): JournalLimit {
    const { limits } = this.#options.journal;
    const short = limits.filter(({ duration, name }) => duration < ENDLESS_MS && !name.startsWith("pool"));
    if (random.below(2) === 0) return short[random.below(short.length)]!;
    const endless = limits.filter(({ name }) => name.startsWith("endless"));
    const last = endless.at(-1);
    if (!last || last.calls > 2 * last.limit) {
      const mode = endless.length % 3 === 0 ? "strict" : "standard";
      const made = newLimit(`endless${endless.length}`, 10 + random.below(60), ENDLESS_MS, mode);
      limits.push(made);
      return made;
    }
    return endless[Math.max(0, endless.length - 1 - random.below(6))]!;
  }
}

function describeChange(name: string, { sentAt, answeredAt, attempts, node }: Settled): string {
  const [from, to] = [sentAt, answeredAt].map((at) => new Date(performance.timeOrigin + at).toISOString());
  return `${name}, sent ${from}, acknowledged ${to} by node ${node}, attempt ${attempts}`;
}

function newLimit(
  name: string,
  limit: number,
  duration: number,
  mode: JournalLimit["mode"] = "standard",
): JournalLimit {
  return { name, limit, duration, mode, admissions: [], calls: 0 };
}

function admit(
  limit: JournalLimit,
  cost: number,
  { node, sentAt, answeredAt }: { node: number | undefined; sentAt: number; answeredAt: number },
): void {
  limit.admissions.push({ node, cost, sentAt, answeredAt });
}
