import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { Generations } from "../../../../engine/src/directory/generations.ts";
import { LookupRateLimiter } from "../../../../engine/src/directory/lookup-rate-limiter.ts";
import { OutboundFailure } from "../../platform/outbound/exchange.ts";
import { Upstreams, UpstreamUnavailable } from "./upstreams.ts";

/** What a verifier does with a question. */
type Behaviour = "valid" | "invalid" | Error;

const down = new Error("connection refused");
const verifier = { url: "https://old.example.com", headers: [], timeout: 1_000, onOutage: "unavailable" } as const;

function openUpstreams() {
  const clock = new SimulatedClock(1_000_000);
  const behaviours = new Map<string, Behaviour>();
  const sent: string[] = [];
  const outages: string[] = [];
  const upstreams = new Upstreams({
    clock,
    directories: { generations: new Generations(), keyLookups: new LookupRateLimiter(clock, 1_000) },
    async requireCapacity() {},
    find: async () => verifier,
    async send(_, { apiId }) {
      sent.push(apiId);
      clock.advance(20);
      const behaviour = behaviours.get(apiId)!;
      if (behaviour instanceof Error) throw behaviour;
      return behaviour === "valid" ? { valid: true, attributes: {} } : { valid: false };
    },
    create: async () => true,
    onOutage: (apiId) => outages.push(apiId),
  });
  let keys = 0;
  /** Asks about a new key. The result: whether it exists, or undefined if nobody knows. */
  const ask = async (behaviour: Behaviour, apiId = "api_1"): Promise<boolean | undefined> => {
    behaviours.set(apiId, behaviour);
    const key = `key ${++keys}`;
    try {
      return await upstreams.ask({ key, location: key, workspaceId: "ws_1", apiIds: [apiId], source: "ws_1" });
    } catch (error) {
      assert(error instanceof UpstreamUnavailable);
      return undefined;
    }
  };
  /** Whether a question is sent. */
  const isAsked = async (behaviour: Behaviour, apiId?: string) => {
    const before = sent.length;
    await ask(behaviour, apiId);
    return sent.length > before;
  };
  return { upstreams, clock, ask, isAsked, outages };
}

describe("a verifier that fails", () => {
  it("is asked a third time, and then not for exactly a second", async () => {
    const { clock, ask, isAsked } = openUpstreams();
    for (let i = 0; i < 3; i++) assert.equal(await isAsked(down), true);
    assert.equal(await isAsked("valid"), false);
    clock.advance(999);
    assert.equal(await ask("valid"), undefined);
    clock.advance(1);
    assert.equal(await ask("valid"), true);
  });

  it("rests again after one more failure, and is trusted again after one answer", async () => {
    const { clock, isAsked } = openUpstreams();
    for (let i = 0; i < 3; i++) await isAsked(down);
    clock.advance(1_000);
    assert.equal(await isAsked(down), true);
    assert.equal(await isAsked(down), false);
    clock.advance(1_000);
    assert.equal(await isAsked("invalid"), true);
    for (let i = 0; i < 3; i++) assert.equal(await isAsked(down), true);
    assert.equal(await isAsked(down), false);
  });

  it("is asked as long as no three questions in a row fail", async () => {
    const { isAsked } = openUpstreams();
    for (let i = 0; i < 5; i++) {
      for (const behaviour of [down, down, "invalid"] as const) assert.equal(await isAsked(behaviour), true);
    }
  });

  it("keeps nobody from asking another one", async () => {
    const { ask, isAsked } = openUpstreams();
    for (let i = 0; i < 4; i++) await ask(down);
    assert.equal(await isAsked("valid", "api_2"), true);
  });

  it("is not one that this node had no connection left for", async () => {
    const { isAsked } = openUpstreams();
    for (let i = 0; i < 9; i++) assert.equal(await isAsked(new OutboundFailure("busy", "too many requests")), true);
  });
});

describe("the counts of questions", () => {
  it("are by outcome, with the time that sent ones took", async () => {
    const { upstreams, ask, outages } = openUpstreams();
    for (const behaviour of [
      "valid",
      "valid",
      "invalid",
      new OutboundFailure("busy", "x"),
      down,
      down,
      down,
    ] as const) {
      await ask(behaviour);
    }
    for (let i = 0; i < 5; i++) await ask("valid");
    assert.deepEqual(upstreams.questions, { valid: 2, invalid: 1, failed: 3, skipped: 6 });
    const { cumulated, sum } = upstreams.durations.read(0);
    assert.deepEqual([cumulated.at(-1), sum], [6, 120]);
    assert.equal(outages.length, 4);
  });

  it("have one question about a key that was refused", async () => {
    const { upstreams, ask } = openUpstreams();
    assert.equal(await ask("invalid"), false);
    const again = { key: "key 1", location: "key 1", workspaceId: "ws_1", apiIds: ["api_1"], source: "ws_1" };
    assert.equal(upstreams.ask(again), false);
    assert.deepEqual(upstreams.questions, { valid: 0, invalid: 1, failed: 0, skipped: 0 });
  });
});
