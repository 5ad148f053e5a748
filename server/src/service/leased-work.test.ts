import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { LeaseLost } from "../platform/store/lease.ts";
import { LeasedWork, type LeasedWorkOptions } from "../platform/store/leased-work.ts";

const INTERVAL = 20_000;
const LEASE = { name: "retention", holder: "a", token: 1 } as const;

/** Work beside a database whose answers a test replaces. */
function open(pass: (work: LeasedWork) => Promise<void>, isEmbedded = false) {
  const clock = new SimulatedClock(1_768_478_400_000);
  const called: string[] = [];
  const answers: Record<string, () => Promise<unknown>> = {
    takeLease: async () => LEASE,
    renewLease: async () => {},
    releaseLease: async () => {},
  };
  const store = {
    isEmbedded,
    transact: async (name: string) => {
      called.push(name);
      return answers[name]!();
    },
  } as unknown as LeasedWorkOptions["store"];
  const reported: unknown[] = [];
  let lost = 0;
  const work: LeasedWork = new LeasedWork({
    store,
    clock,
    name: "retention",
    holder: "a",
    formerHolders: [],
    interval: INTERVAL,
    pausePerStep: 2,
    pass: () => pass(work),
    onLost: () => lost++,
    onFailed: (error) => reported.push(error),
  });
  const advance = async (length: number) => {
    clock.advance(length);
    // Every answer continues within a few turns.
    for (let i = 0; i < 5; i++) await setImmediate();
  };
  return { work, clock, called, answers, reported, advance, lost: () => lost };
}

const forever = () => new Promise<never>(() => {});

describe("LeasedWork", () => {
  it("does its steps with the lease, and pauses in proportion to a step", async () => {
    const startedAt: number[] = [];
    const { clock, work, advance } = open((own) =>
      own.steps(async (lease) => {
        assert.equal(lease, LEASE);
        startedAt.push(clock.monotonic());
        clock.advance(100);
        return startedAt.length < 3;
      }),
    );
    await advance(INTERVAL);
    for (let i = 0; i < 3; i++) await advance(200);
    assert.deepEqual(startedAt, [INTERVAL, INTERVAL + 300, INTERVAL + 600]);
    await work.stop();
  });

  it("does nothing while another node has the lease, and asks again", async () => {
    let passes = 0;
    const { work, called, answers, advance } = open(async () => void passes++);
    answers.takeLease = async () => undefined;
    await advance(INTERVAL);
    assert.deepEqual([passes, work.lease, called], [0, undefined, ["takeLease"]]);
    answers.takeLease = async () => LEASE;
    await advance(INTERVAL);
    assert.equal(passes, 1);
    await work.stop();
    assert.deepEqual(called, ["takeLease", "takeLease", "releaseLease"]);
  });

  it("renews the lease at each pass, on PostgreSQL only", async () => {
    for (const [isEmbedded, renewals] of [
      [false, 2],
      [true, 0],
    ] as const) {
      const { work, called, advance } = open(async () => {}, isEmbedded);
      for (let i = 0; i < 3; i++) await advance(INTERVAL);
      assert.equal(called.filter((name) => name === "renewLease").length, renewals);
      await work.stop();
    }
  });

  it("loses the lease in a step or at its renewal, and takes it again later", async () => {
    let isLost = true;
    const { work, answers, reported, advance, lost } = open((own) =>
      own.steps(async () => {
        if (isLost) throw Object.assign(new Error("from the thread"), { name: new LeaseLost().name });
        return false;
      }),
    );
    await advance(INTERVAL);
    assert.deepEqual([work.lease, lost()], [undefined, 1]);
    isLost = false;
    await advance(INTERVAL);
    assert.equal(work.lease, LEASE);
    answers.renewLease = () => Promise.reject(new LeaseLost());
    await advance(INTERVAL);
    assert.deepEqual([work.lease, lost(), reported], [undefined, 2, []]);
    await work.stop();
  });

  it("keeps the lease through an outage, and reports other failures", async () => {
    const failure = new Error("no disk");
    let outcome: Error = new StoreUnavailable("away");
    const { work, reported, advance } = open((own) => own.steps(() => Promise.reject(outcome)));
    await advance(INTERVAL);
    assert.deepEqual([work.lease, reported], [LEASE, []]);
    outcome = failure;
    await advance(INTERVAL);
    assert.deepEqual([work.lease, reported], [LEASE, [failure]]);
    await work.stop();
  });

  describe("stops", () => {
    it("in a pause", async () => {
      let steps = 0;
      const { work, clock, advance } = open((own) =>
        own.steps(async () => {
          clock.advance(100);
          return ++steps > 0;
        }),
      );
      await advance(INTERVAL);
      await work.stop();
      await advance(10 * INTERVAL);
      assert.equal(steps, 1);
    });

    it("without waiting for a step that the database never answers", async () => {
      let further = 0;
      const { work, called, advance, reported } = open(async (own) => {
        await own.steps(forever);
        await own.steps(async () => ++further > 0);
      });
      await advance(INTERVAL);
      await work.stop();
      assert.deepEqual([called.at(-1), further, reported], ["releaseLease", 0, []]);
    });

    it("without waiting for a lease that the database never gives", async () => {
      const { work, answers, advance } = open(async () => {});
      answers.takeLease = forever;
      await advance(INTERVAL);
      await work.stop();
    });

    it("and gives back a lease that it gets afterwards", async () => {
      const { work, called, answers, advance } = open(async () => assert.fail("There was a pass"));
      const taken = Promise.withResolvers<unknown>();
      answers.takeLease = () => taken.promise;
      await advance(INTERVAL);
      await work.stop();
      taken.resolve(LEASE);
      await advance(0);
      assert.deepEqual([called, work.lease], [["takeLease", "releaseLease"], undefined]);
    });

    it("and ignores how a step ends that it did not wait for", async () => {
      const answer = Promise.withResolvers<boolean>();
      const { work, advance, reported } = open((own) => own.steps(() => answer.promise));
      await advance(INTERVAL);
      await work.stop();
      answer.reject(new LeaseLost());
      await advance(0);
      assert.deepEqual(reported, []);
    });
  });
});
