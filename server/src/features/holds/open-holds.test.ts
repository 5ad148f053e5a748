import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { OpenHolds } from "./open-holds.ts";

const own = { workspaceId: "ws_1", keyId: "key_1" };

function openHolds(stored: Record<string, number>, { perKey = 3, perWorkspace = 5, isShared = true } = {}) {
  const clock = new SimulatedClock(0);
  const counts: PromiseWithResolvers<Map<string, number>>[] = [];
  let isHeld = false;
  let isAccepted: boolean | undefined = true;
  let questions = 0;
  const holds = new OpenHolds({
    clock,
    maxima: { perKey, perWorkspace },
    isShared,
    async accept() {
      questions++;
      await new Promise(setImmediate);
      if (isAccepted === undefined) throw new Error("unreachable");
      return isAccepted;
    },
    count() {
      const next = Promise.withResolvers<Map<string, number>>();
      counts.push(next);
      if (!isHeld) next.resolve(new Map(Object.entries(stored)));
      return next.promise;
    },
  });
  const add = async (holder: typeof own) => holds.add(holder);
  const attempt = (holder: Partial<typeof own> = {}) =>
    add({ ...own, ...holder }).then(
      () => "added",
      (error: unknown) => {
        assert(error instanceof Problem);
        if (error.code === "precondition_failed") return error.code;
        assert.equal(error.code, "workspace_quota_exceeded");
        assert.equal(error.headers["retry-after"], "5");
        return error.message;
      },
    );
  return {
    clock,
    counts,
    holds,
    attempt,
    /** Later counts wait for an answer of the test. */
    hold() {
      isHeld = true;
    },
    accept(is: boolean | undefined) {
      isAccepted = is;
    },
    questions: () => questions,
  };
}

describe("the bounds of open holds", () => {
  it("are those of a key and of its workspace, named by their settings", async () => {
    const { attempt, holds } = openHolds({ key_1: 2, key_2: 1 });
    assert.equal(await attempt(), "added");
    assert.match(await attempt(), /^This key has .* \(LATCHKEY_HOLDS_PER_KEY\)/);
    assert.equal(await attempt({ keyId: "key_3" }), "added");
    assert.match(await attempt({ keyId: "key_3" }), /^This workspace has .* \(LATCHKEY_HOLDS_PER_WORKSPACE\)/);
    holds.remove(own);
    assert.equal(await attempt({ keyId: "key_3" }), "added");
    assert.equal(await attempt({ workspaceId: "ws_2", keyId: "key_3" }), "added");
  });

  it("come after the release of every node, which is asked each second until it is right", async () => {
    const { attempt, accept, clock, counts, questions } = openHolds({});
    accept(false);
    assert.equal(await attempt(), "precondition_failed");
    assert.equal(counts.length, 0);
    accept(true);
    clock.advance(999);
    assert.equal(await attempt(), "precondition_failed");
    assert.equal(questions(), 1);
    clock.advance(1);
    assert.equal(await attempt(), "added");
    accept(false);
    assert.equal(await attempt(), "added");
    assert.equal(questions(), 2);
  });

  it("share the question after the release, and ask it again after a failure", async () => {
    const { accept, holds, questions } = openHolds({});
    accept(undefined);
    const together = () => Promise.allSettled([holds.add(own), holds.add(own), holds.add(own)]);
    assert.deepEqual(
      (await together()).map(({ status }) => status),
      ["rejected", "rejected", "rejected"],
    );
    assert.equal(questions(), 1);
    accept(true);
    assert.deepEqual(
      (await together()).map(({ status }) => status),
      ["fulfilled", "fulfilled", "fulfilled"],
    );
    assert.equal(questions(), 2);
  });

  it("hold for calls that begin together before the first count", async () => {
    const { attempt, counts } = openHolds({});
    const answers = await Promise.all(Array.from({ length: 10 }, () => attempt()));
    assert.equal(answers.filter((answer) => answer === "added").length, 3);
    assert.equal(counts.length, 1);
  });

  it("wait for the first count, also for calls that begin during it", async () => {
    const { attempt, counts, hold } = openHolds({});
    hold();
    const first = attempt();
    await new Promise(setImmediate);
    const second = attempt();
    await new Promise(setImmediate);
    counts[0]!.resolve(new Map([["key_1", 3]]));
    assert.match(await first, /^This key/);
    assert.match(await second, /^This key/);
  });

  it("are those of this node while the first count fails", async () => {
    const { attempt, clock, counts, hold } = openHolds({});
    hold();
    const answers = [attempt(), attempt({ keyId: "key_2" })];
    await new Promise(setImmediate);
    counts[0]!.reject(new Error("unreachable"));
    assert.deepEqual(await Promise.all(answers), ["added", "added"]);
    assert.deepEqual([await attempt(), await attempt()], ["added", "added"]);
    assert.match(await attempt(), /^This key/);
    clock.advance(5_000);
    assert.match(await attempt(), /^This key/);
    counts[1]!.resolve(new Map());
    await new Promise(setImmediate);
    assert.equal(await attempt(), "added");
  });

  it("are those of this node when the first count takes longer than a second, and of all when it ends", async () => {
    const { attempt, clock, counts, hold } = openHolds({});
    hold();
    const answer = attempt();
    await new Promise(setImmediate);
    clock.advance(1_000);
    assert.deepEqual([await answer, await attempt()], ["added", "added"]);
    assert.equal(counts.length, 1);
    counts[0]!.resolve(new Map([["key_1", 1]]));
    await new Promise(setImmediate);
    assert.match(await attempt(), /^This key/);
  });

  it("follow what other nodes closed, and what this one did during the count", async () => {
    const { attempt, clock, counts, hold, holds } = openHolds({ key_1: 3 });
    assert.match(await attempt(), /^This key/);
    hold();
    clock.advance(4_999);
    assert.match(await attempt(), /^This key/);
    assert.equal(counts.length, 1);
    clock.advance(1);
    assert.match(await attempt(), /^This key/);
    assert.match(await attempt(), /^This key/);
    assert.equal(counts.length, 2);
    holds.remove(own);
    assert.equal(await attempt(), "added");
    assert.equal(await attempt({ keyId: "key_2" }), "added");
    counts[1]!.resolve(new Map([["key_1", 1]]));
    await new Promise(setImmediate);
    // One counted, and of those during the count one less and one more.
    assert.deepEqual([await attempt(), await attempt()], ["added", "added"]);
    assert.match(await attempt(), /^This key/);
  });

  it("are counted again after a count that failed", async () => {
    const { attempt, clock, counts, hold } = openHolds({ key_1: 3 });
    await attempt();
    hold();
    clock.advance(5_000);
    await attempt();
    counts[1]!.reject(new Error("unreachable"));
    await new Promise(setImmediate);
    assert.match(await attempt(), /^This key/);
    clock.advance(5_000);
    await attempt();
    assert.equal(counts.length, 3);
  });

  it("are counted once a minute where no other node opens holds, and sooner after a count that failed", async () => {
    const { attempt, clock, counts, hold } = openHolds({ key_1: 3 }, { isShared: false });
    await attempt();
    clock.advance(59_999);
    await attempt();
    assert.equal(counts.length, 1);
    hold();
    clock.advance(1);
    await attempt();
    counts[1]!.reject(new Error("unreachable"));
    await new Promise(setImmediate);
    clock.advance(5_000);
    await attempt();
    assert.equal(counts.length, 3);
  });
});
