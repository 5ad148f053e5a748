import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../engine/src/clock/system.ts";
import { eventually, launchEdge, ROOT_KEY, type Server, start, startEdge } from "./process.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/** Two releases of the program: the entry point of each; undefined is the working tree. */
export interface EdgeReleases {
  /** What this combination is called. */
  name: string;
  home: string | undefined;
  edge: string | undefined;
  /** Whether edges of both lease limits. */
  lease: boolean;
}

const DAY = 86_400_000;
/** Milliseconds after which a key that was disabled or deleted is dead at an edge. */
const REVOCATION_MAX = 1_000;
/** The limit that calls through the edge and at home use up together. A tenth of it is leased. */
const LIMIT = 800;
const NAMESPACE_LIMIT = 100;
const CREDITS = 1_000_000;
/** Calls in progress at a time. */
const CALLERS = 4;
/** Keys that are revoked under load. */
const REVOKED = 6;
/** Verifications while home is away. */
const AWAY = 25;

interface MadeKey {
  key: string;
  keyId: string;
}

/**
 * An edge of one release before the service of another one, as callers see both: their answers, revocations, limits and counts
 * under load; then the edge replaced by one of the other release, with the same data folder, and back; then the service. Resolves
 * with a line about it.
 */
export async function attachEdge(folder: string, releases: EdgeReleases): Promise<string> {
  const directory = join(folder, releases.name.replaceAll(" ", "-"));
  mkdirSync(directory);
  const home = await start({ directory, ...mainOf(releases.home) });
  const permissions = ["replicas.*.open", "ratelimits.*.limit"];
  const { key: rootKey } = await home.ok("rootKeys.createRootKey", { name: "edge", permissions });
  const edge = await startEdge(home, rootKey, { directory, ...mainOf(releases.edge) });
  const compared = await compareAnswers(home, edge);
  const load = new EdgeLoad(home, edge);
  await load.run();
  await load.useUpLimit(releases.lease);
  await stopInOrder(edge);
  await load.checkCounts();
  const attached = { directory, home, rootKey };
  await replaceEdge(attached, releases);
  await replaceHome(attached, releases);
  return `${releases.name}: ${compared} calls compared, ${load.calls} under load, ${load.leased} of them leased`;
}

/** This edge before a service that has no operations of edges: it waits, and says what to do. */
export async function attachToNone(folder: string, home: Server): Promise<string> {
  const edge = launchEdge(home, ROOT_KEY, { directory: folder });
  const line = await edge.logged("home has no operations of edges: upgrade the service first, or correct --upstream");
  assert.match(JSON.stringify(line), /replica\.listChanges.*404/);
  await edge.kill("SIGTERM");
  return "this edge before a service without edges: waits, and says so";
}

function mainOf(main: string | undefined): { main?: string } {
  return main === undefined ? {} : { main };
}

async function stopInOrder(program: Server): Promise<void> {
  const { code } = await program.kill("SIGTERM");
  assert.equal(code, 0, `it did not stop in order:\n${program.output}`);
}

/** Disables or deletes a key at home. The edge, which has just verified it, refuses it a second later. */
async function revoke(home: Server, edge: Server, apiId: string, isDeleted: boolean): Promise<void> {
  const { key, keyId }: MadeKey = await home.ok("keys.createKey", { apiId });
  assert.equal((await edge.ok("keys.verifyKey", { key })).code, "VALID");
  if (isDeleted) await home.ok("keys.deleteKey", { keyId });
  else await home.ok("keys.updateKey", { keyId, enabled: false });
  const revokedAt = systemClock.monotonic();
  await eventually("the end of the key", async () => {
    const askedAt = systemClock.monotonic();
    const { valid, code } = await edge.ok("keys.verifyKey", { key });
    if (!valid) assert.equal(code, isDeleted ? "NOT_FOUND" : "DISABLED");
    if (askedAt - revokedAt > REVOCATION_MAX) assert.equal(valid, false, `${askedAt - revokedAt} ms after its end`);
    return !valid;
  });
}

async function countsOf(home: Server, { keyId }: Pick<MadeKey, "keyId">): Promise<number> {
  const range = { start: systemClock.now() - DAY, end: systemClock.now() + DAY };
  const { series } = await home.ok("analytics.getKeyStats", { keyId, ...range });
  return series.reduce((sum: number, { total }: { total: number }) => sum + total, 0);
}

/** An answer without what differs from one call, or from one key to its twin. */
function comparable({ status, body }: { status: number; body: { meta?: object; data?: object; error?: object } }) {
  const { meta, data, error } = body;
  const text = JSON.stringify({ status, meta, data, error })
    .replaceAll(/\b(key|hold|rlns)_\w{16,}/g, "$1")
    .replaceAll(/"(keyId|id|budgetId|parentKeyId|requestId)":"[^"]*"/g, '"$1":""')
    .replaceAll(/"[he] mails"/g, '"mails"')
    .replaceAll(/"(reset|retryAfter|expires|expiresAt)":\d+/g, '"$1":0');
  return JSON.parse(text);
}

/** Makes the same calls at home and through the edge, each on keys and counters of its own. Returns their number. */
async function compareAnswers(home: Server, edge: Server): Promise<number> {
  const { apiId } = await home.ok("apis.createApi", { name: "compared" });
  const other = await home.ok("apis.createApi", { name: "other" });
  await home.ok("permissions.createRole", { name: "editor" });
  await home.ok("permissions.createPermission", { name: "read", slug: "documents.read" });
  await home.ok("identities.createIdentity", { externalId: "acme", meta: { tier: 2 } });
  await home.ok("plans.createPlan", { name: "Pro", ratelimits: [{ name: "plan", limit: 2, duration: DAY }] });
  const { key: weak } = await home.ok("rootKeys.createRootKey", {
    name: "weak",
    permissions: [`apis.${other.apiId}.verify_key`],
  });
  const own = { name: "own", limit: 2, duration: DAY, autoApply: true };
  const kinds: Record<string, object> = {
    plain: {},
    full: {
      name: "full",
      meta: { n: 1, text: "ä" },
      externalId: "acme",
      roles: ["editor"],
      expires: 4_102_444_800_000,
    },
    permitted: { permissions: ["documents.read"] },
    disabled: { enabled: false },
    elsewhere: { allowedIps: ["198.51.100.0/24"] },
    limited: { ratelimits: [own] },
    "in shadow mode": { ratelimits: [{ ...own, shadow: true }] },
    paying: { credits: { remaining: 3 } },
    planned: { plan: "Pro" },
    concurrent: { concurrency: [{ name: "jobs", limit: 2 }] },
    deleted: {},
  };
  const calls: { asked: object; as?: string | null }[] = [
    { asked: {} },
    { asked: {}, as: null },
    { asked: {}, as: weak },
    { asked: {}, as: "lk_no_root_key_at_all_0123456789" },
    { asked: { permissions: "documents.read" } },
    { asked: { apiId: other.apiId } },
    { asked: { credits: { cost: 2 }, tags: ["path=/v1"] } },
    { asked: { ratelimits: [{ name: "own", cost: 1 }] } },
    { asked: { ratelimits: [{ name: "ad hoc", limit: 1, duration: DAY }] } },
    { asked: { hold: { ttl: 60_000 } } },
    { asked: { credits: { cost: -1 } } },
    { asked: {} },
  ];
  let compared = 0;
  const same = async (what: string, operation: string, bodies: readonly [object, object], as?: string | null) => {
    const [expected, found] = [
      comparable(await home.call(operation, bodies[0], as)),
      comparable(await edge.call(operation, bodies[1], as)),
    ];
    assert.deepEqual(found, expected, what);
    compared++;
    return expected;
  };
  for (const [kind, members] of Object.entries(kinds)) {
    const make = async () => {
      const made: MadeKey = await home.ok("keys.createKey", { apiId, ...members });
      if (kind === "deleted") await home.ok("keys.deleteKey", { keyId: made.keyId });
      return made;
    };
    const [ofHome, ofEdge] = [await make(), await make()];
    for (const { asked, as } of calls) {
      const bodies = [
        { ...asked, key: ofHome.key },
        { ...asked, key: ofEdge.key },
      ] as const;
      const { status } = await same(`${kind}: ${JSON.stringify({ asked, as })}`, "keys.verifyKey", bodies, as);
      if (as?.startsWith("lk_no_root_key")) assert.equal(status, 401);
    }
  }
  for (const as of [undefined, null, weak, "lk_no_root_key_at_all_0123456789"]) {
    for (const identifier of ["a", "a", "a", "b"]) {
      const [one, two] = ["h", "e"].map((of) => ({ namespace: `${of} mails`, identifier, limit: 2, duration: DAY }));
      await same("ratelimits.limit", "ratelimits.limit", [one ?? {}, two ?? {}], as);
      await same(
        "ratelimits.multiLimit",
        "ratelimits.multiLimit",
        [
          [one, one],
          [two, two],
        ],
        as,
      );
    }
  }
  return compared;
}

/** Calls through an edge and at home, which count together. It counts what was answered, so that the books can be compared. */
class EdgeLoad {
  calls = 0;
  leased = 0;
  readonly #home: Server;
  readonly #edge: Server;
  #apiId = "";
  #plain: MadeKey = { key: "", keyId: "" };
  #limited: MadeKey = { key: "", keyId: "" };
  #paying: MadeKey = { key: "", keyId: "" };
  #turn = 0;
  #plainCalls = 0;
  #limitedCalls = 0;
  #passed = 0;
  #counted = 0;
  #countedPassed = 0;
  #spent = 0;

  constructor(home: Server, edge: Server) {
    this.#home = home;
    this.#edge = edge;
  }

  /** Makes calls until each of the keys to revoke was refused. */
  async run(): Promise<void> {
    const home = this.#home;
    this.#apiId = (await home.ok("apis.createApi", { name: "loaded" })).apiId;
    const make = (members: object) => home.ok("keys.createKey", { apiId: this.#apiId, ...members });
    this.#plain = await make({ name: "plain" });
    this.#limited = await make({
      ratelimits: [{ name: "requests", limit: LIMIT, duration: DAY, autoApply: true }],
    });
    this.#paying = await make({ credits: { remaining: CREDITS } });
    let isOver = false;
    const caller = async () => {
      while (!isOver) await this.#step(++this.#turn);
    };
    const callers = Promise.all(Array.from({ length: CALLERS }, caller));
    callers.catch(() => {});
    try {
      for (let n = 0; n < REVOKED; n++) await revoke(home, this.#edge, this.#apiId, n % 2 === 0);
    } finally {
      isOver = true;
    }
    await callers;
    const { credits } = await home.ok("keys.getKey", { keyId: this.#paying.keyId });
    assert.equal(credits.remaining, CREDITS - this.#spent, "credits were lost or charged twice");
  }

  /** Calls until home and the edge deny, and the edge has no lease. */
  async useUpLimit(lease: boolean): Promise<void> {
    let denied = 0;
    await eventually("the end of the limit", async () => {
      const answers = await Promise.all([this.#edge, this.#edge, this.#home].map((at) => this.#useLimit(at)));
      denied = answers.includes(true) ? 0 : denied + 1;
      return denied > 10 && (await this.#metric("latchkey_edge_leases")) === 0;
    });
    assert.equal(this.#passed, LIMIT, `of a limit of ${LIMIT}, ${this.#passed} calls passed`);
    this.leased = await this.#metric("latchkey_edge_leased_charges_total");
    if (lease) assert(this.leased > 0, "no call was charged from a lease");
    while (this.#counted <= NAMESPACE_LIMIT * 2) await this.#count(this.#counted % 2 === 0 ? this.#edge : this.#home);
    assert.equal(this.#countedPassed, NAMESPACE_LIMIT, "a limit of a namespace lets another number of calls pass");
  }

  /** Every call is in the analytics, once. */
  async checkCounts(): Promise<void> {
    const home = this.#home;
    const expected = [this.#plainCalls, this.#limitedCalls];
    let found: number[] = [];
    const read = async () => {
      found = await Promise.all([this.#plain, this.#limited].map((key) => countsOf(home, key)));
    };
    await eventually("the counts", async () => {
      await read();
      return found.every((count, i) => count >= (expected[i] ?? 0));
    });
    assert.deepEqual(found, expected, "calls were counted twice");
  }

  async #step(turn: number): Promise<void> {
    const [home, edge] = [this.#home, this.#edge];
    switch (turn % 8) {
      case 0:
        await this.#useLimit(home);
        return;
      case 1:
        this.#spent += 2;
        await this.#verify(turn % 16 === 1 ? home : edge, { key: this.#paying.key, credits: { cost: 2 } });
        return;
      case 2:
        await this.#count(turn % 16 === 2 ? home : edge);
        return;
      case 3:
      case 4:
        this.#plainCalls++;
        await this.#verify(turn % 16 === 3 ? home : edge, { key: this.#plain.key });
        return;
      default:
        await this.#useLimit(edge);
    }
  }

  /** Verifies a key that is valid. */
  async #verify(at: Server, body: object): Promise<void> {
    this.calls++;
    assert.equal((await at.ok("keys.verifyKey", body)).code, "VALID");
  }

  async #useLimit(at: Server): Promise<boolean> {
    this.calls++;
    this.#limitedCalls++;
    const { code } = await at.ok("keys.verifyKey", { key: this.#limited.key });
    if (code === "VALID") this.#passed++;
    else assert.equal(code, "RATE_LIMITED");
    return code === "VALID";
  }

  async #count(at: Server): Promise<void> {
    this.calls++;
    this.#counted++;
    const limit = { namespace: "mails", identifier: "all", limit: NAMESPACE_LIMIT, duration: DAY };
    if ((await at.ok("ratelimits.limit", limit)).success) this.#countedPassed++;
  }

  /** A metric of the edge; 0 if its release does not have it. */
  async #metric(name: string): Promise<number> {
    const metrics = await (await fetch(`${this.#edge.address}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(metrics)?.[1] ?? 0);
  }
}

interface Attached {
  directory: string;
  home: Server;
  rootKey: string;
}

/** Replaces an edge by one of the other release and back, each time with counts that home has not taken. */
async function replaceEdge({ directory, home, rootKey }: Attached, releases: EdgeReleases): Promise<void> {
  const { apiId } = await home.ok("apis.createApi", { name: "replaced" });
  const made: MadeKey = await home.ok("keys.createKey", { apiId });
  const proxy = await TcpProxy.open(home.address);
  let expected = 0;
  const verify = async (edge: Server) => {
    assert.equal((await edge.ok("keys.verifyKey", { key: made.key }, null)).code, "VALID");
    expected++;
  };
  try {
    for (const main of [releases.edge, releases.home, releases.edge]) {
      proxy.isClosed = false;
      const upstream = { address: new URL(proxy.url).origin };
      const edge = await startEdge(upstream, rootKey, { directory, args: ["--stale", "5m"], ...mainOf(main) });
      await eventually("the counts that the former edge kept", async () => (await countsOf(home, made)) === expected);
      await verify(edge);
      proxy.isClosed = true;
      proxy.cut();
      await edge.logged("home does not answer: cached keys are verified as long as --stale allows");
      for (let i = 0; i < AWAY; i++) await verify(edge);
      await stopInOrder(edge);
    }
    proxy.isClosed = false;
    const last = await startEdge(home, rootKey, { directory, ...mainOf(releases.home) });
    await eventually("the counts that the last edge kept", async () => (await countsOf(home, made)) >= expected);
    await stopInOrder(last);
    assert.equal(await countsOf(home, made), expected);
  } finally {
    await proxy.close();
  }
}

/** Replaces the service by the other release and back, under an edge that stays. */
async function replaceHome({ directory, home, rootKey }: Attached, releases: EdgeReleases): Promise<void> {
  const edge = await startEdge(home, rootKey, { directory, ...mainOf(releases.edge) });
  const { apiId } = await home.ok("apis.createApi", { name: "moved" });
  const made: MadeKey = await home.ok("keys.createKey", { apiId });
  const { port } = new URL(home.address);
  let current = home;
  let moves = 0;
  for (const main of [releases.edge, releases.home]) {
    await revoke(current, edge, apiId, true);
    await stopInOrder(current);
    current = await start({ directory, args: ["--port", port], ...mainOf(main) });
    moves++;
    await eventually("the edge to have home again", () => {
      return edge.log.filter(({ msg }) => msg === "home answers again").length === moves;
    });
    assert.equal((await edge.ok("keys.verifyKey", { key: made.key })).code, "VALID");
    await revoke(current, edge, apiId, false);
  }
  await stopInOrder(edge);
  assert.equal(await countsOf(current, made), moves);
  await stopInOrder(current);
}
