import type { Milliseconds } from "../clock/clock.ts";
import type { SimulatedClock } from "../clock/simulated.ts";
import type { Random } from "../random/random.ts";
import {
  type ChangesAnswer,
  type ChangesQuestion,
  type ChargeAnswer,
  type ChargeQuestion,
  type Home,
  HomeUnavailable,
  type LeaseAnswer,
  type LeaseQuestion,
  OperationUnknown,
  type RecordsAnswer,
  type RecordsQuestion,
  type ReplicaKey,
  ReplicaRefused,
} from "./home.ts";
import { keyedTag } from "./keyed-tags.ts";
import { type NamedCost, SimulatedLimits } from "./simulated-limits.ts";

/** How often a node of the simulation reads the changes. */
const READ_INTERVAL: Milliseconds = 200;
/** Beyond this age a node says that it is not current. */
const CURRENT_MAX: Milliseconds = 1_000;

interface Node {
  final: number;
  readAt: Milliseconds;
  /** Until when it neither reads nor answers. */
  frozenUntil: Milliseconds;
  /** Until when it does not read, but answers. */
  cutOffUntil: Milliseconds;
}

/** The trouble of the network: each is a share of 1,000 messages, or the longest delay. Repeated are questions about leases. */
export interface Trouble {
  lost: number;
  repeated: number;
  delayMax: Milliseconds;
}

/**
 * Home in a simulation, with several nodes behind a balancer that chooses one for each question: for tests of replicas. A
 * network with delays and losses is in between.
 */
export class SimulatedHome implements Home {
  readonly workspaceId = "ws_1";
  readonly keys = new Map<string, ReplicaKey>();
  readonly trouble: Trouble = { lost: 0, repeated: 0, delayMax: 0 };
  /** Whether home refuses the replica. */
  refuses = false;
  /** Whether it is of a release with leases. */
  lends = true;
  readonly limits: SimulatedLimits;
  readonly asked = { changes: 0, records: 0, charges: 0, leases: 0 };
  readonly #clock: SimulatedClock;
  readonly #random: Random;
  readonly #nodes: Node[];
  readonly #changes: { readonly tags: readonly string[] }[] = [];
  #epoch = 1;

  constructor(clock: SimulatedClock, random: Random, nodes = 1) {
    this.#clock = clock;
    this.#random = random;
    this.limits = new SimulatedLimits(clock, random);
    this.#nodes = Array.from({ length: nodes }, () => ({ final: 0, readAt: 0, frozenUntil: 0, cutOffUntil: 0 }));
    for (const [i, node] of this.#nodes.entries()) this.#readSoon(node, 1 + i);
  }

  /** Commits a change. */
  change(...tags: string[]): void {
    this.#changes.push({ tags });
  }

  /** Lets every node read the changes, as they do while a replica is suspended. */
  read(): void {
    for (const node of this.#nodes) this.#read(node);
  }

  freeze(node: number, length: Milliseconds): void {
    const found = this.#nodes[node];
    if (found) found.frozenUntil = this.#clock.monotonic() + length;
  }

  cutOff(node: number, length: Milliseconds): void {
    const found = this.#nodes[node];
    if (found) found.cutOffUntil = this.#clock.monotonic() + length;
  }

  /** Another database takes the place of this one. */
  replaceDatabase(): void {
    this.#epoch++;
  }

  listChanges(question: ChangesQuestion): Promise<ChangesAnswer> {
    this.asked.changes++;
    return this.#deliver(async (node) => {
      const arrivedAt = this.#clock.monotonic();
      const [epoch, number] = question.position?.split(":").map(Number) ?? [this.#epoch, undefined];
      const isLost = epoch !== this.#epoch;
      this.#catchUp(node, isLost ? 0 : (number ?? 0));
      if (!isLost && number !== undefined) {
        const until = arrivedAt + question.wait;
        while (node.final <= number && this.#clock.monotonic() < until) await this.#pass(10);
      }
      if (this.#clock.monotonic() - node.readAt > CURRENT_MAX) throw new HomeUnavailable("This node is not current");
      const tags =
        isLost || number === undefined ? [] : this.#changes.slice(number, node.final).flatMap((one) => one.tags);
      return {
        position: `${this.#epoch}:${node.final}`,
        age: arrivedAt - node.readAt,
        isLost,
        tags: tags.map((tag) => keyedTag(question.tagKey, tag)),
        hasMore: false,
        workspaceId: this.workspaceId,
        allowsAnonymous: true,
      };
    });
  }

  resolveKeys({ keys = [], rootKeys = [], workspace, position }: RecordsQuestion): Promise<RecordsAnswer> {
    this.asked.records++;
    return this.#deliver(async (node) => {
      this.#catchUp(node, Number(position?.split(":")[1] ?? 0));
      return {
        keys: keys.map((hash) => this.keys.get(hash) ?? null),
        rootKeys: rootKeys.map(() => null),
        ...(workspace && {
          workspace: {
            id: this.workspaceId,
            enabled: true,
            hasImportedKeys: true,
            hasSha512Keys: false,
            hasUpstreams: false,
          },
        }),
      };
    });
  }

  charge({ calls = [], limits = [] }: ChargeQuestion): Promise<ChargeAnswer> {
    this.asked.charges++;
    return this.#deliver(async () => ({
      results: calls.map(({ hash, ratelimits }) => {
        const key = this.keys.get(hash);
        if (key === undefined) return { data: { valid: false, code: "NOT_FOUND" } };
        const { keyId } = key;
        const isAllowed = this.limits.charge(key, ratelimits as readonly NamedCost[] | undefined)?.allowed !== false;
        const code = isAllowed ? "VALID" : "RATE_LIMITED";
        return { data: { valid: isAllowed, code, keyId, isOfHome: true } };
      }),
      limits: limits.map(() => ({ isElsewhere: true })),
    }));
  }

  lease({ leases }: LeaseQuestion): Promise<LeaseAnswer> {
    this.asked.leases++;
    return this.#deliver(async () => {
      if (!this.lends) throw new OperationUnknown("There is no such operation");
      const answer = () => Promise.all(leases.map((one) => this.limits.lease(this.keys.get(one.key.hash), one)));
      const first = { leases: await answer() };
      // The answer of the second one is lost.
      if (this.#random.below(1_000) < this.trouble.repeated) await answer();
      return first;
    });
  }

  /** A node reads before it answers one who knows more. */
  #catchUp(node: Node, number: number): void {
    if (node.final >= number) return;
    if (this.#clock.monotonic() < node.cutOffUntil) throw new HomeUnavailable("This node is behind");
    this.#read(node);
  }

  #read(node: Node): void {
    node.readAt = this.#clock.monotonic();
    node.final = this.#changes.length;
  }

  #readSoon(node: Node, delay: Milliseconds): void {
    this.#clock.schedule(delay, () => {
      const now = this.#clock.monotonic();
      if (now >= node.frozenUntil && now >= node.cutOffUntil) this.#read(node);
      this.#readSoon(node, READ_INTERVAL);
    });
  }

  /** Carries a question to a node and its answer back. */
  async #deliver<A>(answer: (node: Node) => Promise<A>): Promise<A> {
    const node = this.#nodes[this.#random.below(this.#nodes.length)];
    if (node === undefined) throw new Error("Home has no node");
    await this.#travel();
    if (this.refuses) throw new ReplicaRefused("The root key is disabled");
    while (this.#clock.monotonic() < node.frozenUntil) await this.#pass(20);
    const result = await answer(node);
    while (this.#clock.monotonic() < node.frozenUntil) await this.#pass(20);
    await this.#travel();
    return result;
  }

  async #travel(): Promise<void> {
    if (this.trouble.delayMax > 0) await this.#pass(this.#random.below(this.trouble.delayMax));
    if (this.#random.below(1_000) < this.trouble.lost) throw new HomeUnavailable("The message was lost");
  }

  #pass(length: Milliseconds): Promise<void> {
    return new Promise((resolve) => this.#clock.schedule(length, resolve));
  }
}
