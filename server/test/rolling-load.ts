import assert from "node:assert/strict";
import { systemClock } from "../../engine/src/clock/system.ts";
import { eventually, type Server } from "./process.ts";

/** A key that has a row in every table of keys. */
function fullKey(apiId: string, turn: number) {
  return {
    apiId,
    name: `key ${turn}`,
    externalId: `user_${turn % 20}`,
    meta: { turn },
    expires: 4_102_444_800_000,
    roles: ["rolling"],
    permissions: ["documents.read"],
    credits: { remaining: CREDITS, refill: { interval: "daily", amount: CREDITS } },
    ratelimits: [{ name: "requests", limit: 1_000_000, duration: 60_000, autoApply: true }],
  };
}

/** Calls in progress at a time. */
const CALLERS = 2;
/** Credits of the pool at the start. */
const CREDITS = 1_000_000;
/** The limit of one window that lasts longer than the test. */
const LIMIT = 100;

/**
 * Calls that use every part that nodes share, spread over the present nodes. It counts what was acknowledged, so that the
 * books can be compared at the end. A call that fails fails the test: callers of a rolling upgrade see none.
 */
export class RollingLoad {
  nodes: Server[] = [];
  calls = 0;
  #turn = 0;
  #isOver = false;
  #running: Promise<unknown> = Promise.resolve();
  #apiId = "";
  #spending = { key: "", keyId: "" };
  #limited = { key: "" };
  readonly #keys: { key: string; keyId: string }[] = [];
  #revoked = 0;
  #spent = 0;
  #passed = 0;
  #denied = 0;

  async open(node: Server): Promise<void> {
    this.nodes = [node];
    this.#apiId = (await node.ok("apis.createApi", { name: "rolling" })).apiId;
    await node.ok("permissions.createRole", { name: "rolling" });
    this.#spending = await node.ok("keys.createKey", { apiId: this.#apiId, credits: { remaining: CREDITS } });
    this.#limited = await node.ok("keys.createKey", { apiId: this.#apiId });
  }

  /** Calls until `stop`. */
  start(): void {
    const caller = async () => {
      while (!this.#isOver) await this.#step(++this.#turn);
    };
    this.#running = Promise.all(Array.from({ length: CALLERS }, caller));
    // It is awaited by `answer` and `stop`.
    this.#running.catch(() => {
      this.#isOver = true;
    });
  }

  /** Resolves after this number of further calls, and when a deleted key is rejected by every node. */
  async answer(calls: number): Promise<void> {
    const wanted = this.calls + calls;
    await eventually(`${calls} calls`, () => this.#isOver || this.calls >= wanted);
    if (this.#isOver) await this.#running;
    await this.#passRevocationOn();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  /** Compares the books of the service with what was acknowledged. */
  async check(): Promise<void> {
    const [node] = this.nodes;
    const { credits } = await node!.ok("keys.getKey", { keyId: this.#spending.keyId });
    assert.equal(credits.remaining, CREDITS - this.#spent, "credits were lost or charged twice");
    assert.equal(this.#passed, LIMIT, `of a limit of ${LIMIT}, ${this.#passed} calls passed`);
    assert(this.#denied > 0, "the limit was never reached");
    for (const each of this.nodes) {
      for (const { key } of this.#keys) assert.equal((await each.ok("keys.verifyKey", { key })).code, "VALID");
    }
    // Every key that was created and every one that was deleted left an entry, on whichever release.
    const created = await this.#auditEntries("keys.createKey");
    assert.equal(created, this.#keys.length + this.#revoked + 2, "entries of the audit log are missing");
    assert.equal(await this.#auditEntries("keys.deleteKey"), this.#revoked);
  }

  async #step(turn: number): Promise<void> {
    switch (turn % 4) {
      case 0: {
        const made = await this.#ok("keys.createKey", fullKey(this.#apiId, turn));
        // At once, and on another node.
        assert.equal((await this.#ok("keys.verifyKey", { key: made.key })).code, "VALID");
        const { keyId } = made;
        await this.#ok("keys.updateKey", { keyId, name: `changed ${turn}`, meta: { turn } });
        await this.#ok("keys.updateCredits", { keyId, operation: "increment", value: turn });
        const { name, credits } = await this.#ok("keys.getKey", { keyId });
        assert.deepEqual([name, credits.remaining], [`changed ${turn}`, CREDITS - 1 + turn]);
        // Further verifications spend too.
        this.#keys.push(made);
        return;
      }
      case 1:
        assert.equal(
          (await this.#ok("keys.verifyKey", { key: this.#spending.key, credits: { cost: 2 } })).code,
          "VALID",
        );
        this.#spent += 2;
        return;
      case 2: {
        const ratelimits = [{ name: "all", limit: LIMIT, duration: 30 * 24 * 3_600_000 }];
        const { code } = await this.#ok("keys.verifyKey", { key: this.#limited.key, ratelimits });
        if (code === "VALID") this.#passed++;
        else this.#denied++;
        return;
      }
      default: {
        const known = this.#keys[turn % Math.max(1, this.#keys.length)];
        if (known) assert.equal((await this.#ok("keys.verifyKey", { key: known.key })).code, "VALID");
      }
    }
  }

  /** Deletes a key on one node; every other one rejects it within a second. */
  async #passRevocationOn(): Promise<void> {
    for (const from of this.nodes) {
      const made = await this.#ok("keys.createKey", { apiId: this.#apiId });
      for (const each of this.nodes) assert.equal((await each.ok("keys.verifyKey", { key: made.key })).code, "VALID");
      await from.ok("keys.deleteKey", { keyId: made.keyId });
      this.#revoked++;
      const revokedAt = systemClock.monotonic();
      for (const each of this.nodes) {
        await eventually("the other node to reject a deleted key", async () => {
          return (await each.ok("keys.verifyKey", { key: made.key })).code === "NOT_FOUND";
        });
      }
      const took = systemClock.monotonic() - revokedAt;
      // The second, and an allowance for the machine.
      assert(took < 5_000, `a deleted key was accepted for ${Math.round(took)} ms`);
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
  async #ok(operation: string, body: unknown): Promise<any> {
    this.calls++;
    const { nodes } = this;
    return nodes[this.calls % nodes.length]!.ok(operation, body);
  }

  async #auditEntries(action: string): Promise<number> {
    let count = 0;
    for (let cursor: string | undefined, hasMore = true; hasMore; ) {
      const [node] = this.nodes;
      const { body } = await node!.call("audit.listEvents", { action, limit: 100, ...(cursor && { cursor }) });
      count += body.data.events?.length ?? body.data.length;
      ({ cursor, hasMore } = body.pagination);
    }
    return count;
  }
}
