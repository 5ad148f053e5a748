import { createHmac } from "node:crypto";
import { hashSecret } from "../../engine/src/crypto/hash.ts";
import { AskedHome } from "../../engine/src/replica/asked-home.ts";
import { rejectAnswer } from "../../engine/src/replica/home.ts";
import type { CallOptions, Reply, TestServer } from "./harness.ts";

/** What an edge tells of itself. */
export const describedEdge = (n = 1, more: object = {}) => ({
  id: `edge_${String(n).padStart(16, "0")}`,
  kind: "process",
  version: "0.1.0",
  records: 0,
  reports: 0,
  ...more,
});

/** A limit of which tests ask for leases, as keys have it. */
export const leasedLimit = { name: "requests", limit: 1_000, duration: 60_000, autoApply: true };

/** A question about leases of a limit, by the string of its key. */
export const askedLease = (key: string, { name, limit, duration } = leasedLimit, more: object = {}) => ({
  key: { hash: hashSecret(key), name, owner: "key" },
  limit,
  duration,
  want: 50,
  ...more,
});

/** What an edge gets of a limit. */
export interface GrantedLease {
  id: string;
  amount: number;
  remaining: number;
  reset: number;
  expiresIn: number;
}

/** An edge that speaks the protocol and keeps only its position. */
export class TestEdge {
  position: string | undefined;
  readonly tagKey: string;
  readonly #server: TestServer;
  readonly #options: CallOptions;
  readonly #n: number;

  constructor(server: TestServer, rootKey: string = server.rootKey, n = 1) {
    this.#server = server;
    this.#options = { as: rootKey };
    this.#n = n;
    this.tagKey = Buffer.alloc(24, n).toString("base64url");
  }

  /** The same edge, which asks another node from now on. */
  at(server: TestServer): TestEdge {
    const edge = new TestEdge(server, this.#options.as!, this.#n);
    edge.position = this.position;
    return edge;
  }

  /** A tag as this edge gets it, computed without the service. */
  tag(tag: string): string {
    return createHmac("sha256", this.tagKey).update(tag).digest().subarray(0, 8).toString("base64url");
  }

  /** Sends one question about changes. */
  send(more: object = {}): Promise<Reply> {
    const { tagKey, position } = this;
    const body = { tagKey, ...(position !== undefined && { position }), edge: describedEdge(this.#n), ...more };
    return this.#server.call("replica.listChanges", body, this.#options);
  }

  /** The `data` of one answer, whose position the edge keeps. */
  async poll(more: object = {}) {
    const { status, body } = await this.send(more);
    if (status !== 200) throw new Error(JSON.stringify(body));
    this.position = body.data.position;
    return body.data as { age: number; isLost: boolean; tags: string[]; hasMore: boolean; allowsAnonymous: boolean };
  }

  /** The records of keys, by their strings. */
  async resolve(...keys: string[]) {
    const { position } = this;
    const body = { keys: keys.map(hashSecret), position };
    return (await this.#server.ok("replica.resolveKeys", body, this.#options)).keys;
  }

  async resolveRootKeys(...keys: string[]) {
    return (await this.#server.ok("replica.resolveKeys", { rootKeys: keys.map(hashSecret) }, this.#options)).rootKeys;
  }

  /** The leases of limits, in the order of the questions. */
  async lease(...leases: object[]): Promise<(GrantedLease | null)[]> {
    return (await this.#server.ok("replica.lease", { leases }, this.#options)).leases;
  }

  /** The results of a batch of calls of limits. */
  async limit(...limits: object[]) {
    return (await this.#server.ok("replica.charge", { limits }, this.#options)).limits;
  }

  /** The records of namespaces. */
  async resolveNamespaces(...namespaces: string[]) {
    return (await this.#server.ok("replica.resolveKeys", { namespaces }, this.#options)).namespaces;
  }

  /** The results of a batch of verifications. */
  async charge(...calls: ({ key: string } & Record<string, unknown>)[]) {
    const hashed = calls.map(({ key, ...more }) => ({
      hash: hashSecret(key),
      isAnonymous: false,
      address: "203.0.113.7",
      ...more,
    }));
    return (await this.#server.ok("replica.charge", { calls: hashed }, this.#options)).results;
  }
}

/** The service as a replica in a test asks it, with the root key of an edge. */
export class TestHome extends AskedHome {
  readonly #server: TestServer;
  readonly #as: string;
  /** Whether the network between both is cut. */
  isAway = false;

  constructor(server: TestServer, rootKey: string) {
    super();
    this.#server = server;
    this.#as = rootKey;
  }

  protected async ask(operation: string, question: object): Promise<unknown> {
    if (this.isAway) rejectAnswer({ operation, status: undefined, detail: "The network is cut" });
    const { status, body } = await this.#server.call(operation, question, { as: this.#as });
    if (status !== 200) rejectAnswer({ operation, status, detail: body.error.detail });
    return body.data;
  }
}
