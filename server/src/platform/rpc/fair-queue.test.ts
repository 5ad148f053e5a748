import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { seededRandom } from "../../../../engine/src/random/seeded.ts";
import { FairQueue } from "./fair-queue.ts";
import { Problem } from "./problems.ts";

const BOUNDS = { runningMax: 3, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 5 };

/** A queue whose work ends when the test says so. */
function openFairQueue(bounds = BOUNDS) {
  const queue = new FairQueue(bounds);
  const running: { workspace: string; id: number; end(): void; fail(): void }[] = [];
  const started: { workspace: string; id: number }[] = [];
  let ids = 0;
  const add = (workspace: string, how = {}) => {
    const id = ids++;
    const result = queue.run(
      workspace,
      () =>
        new Promise<number>((resolve, reject) => {
          started.push({ workspace, id });
          const remove = () => running.splice(running.indexOf(entry), 1);
          const entry = {
            workspace,
            id,
            end() {
              remove();
              resolve(id);
            },
            fail() {
              remove();
              reject(new Error("failed"));
            },
          };
          running.push(entry);
        }),
      how,
    );
    return { id, result };
  };
  const settle = async () => {
    await setImmediate();
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return { queue, running, started, add, settle };
}

describe("a fair queue", () => {
  it("lets a workspace wait for at most one unit of work of each other active workspace", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const random = seededRandom(seed);
        const { running, started, add, settle } = openFairQueue({ ...BOUNDS, waitingPerWorkspaceMax: 1_000 });
        const waiting = new Map<string, Set<number>>();
        /** By workspace: the starts of other workspaces while it waited although it could have run. */
        const overtaken = new Map<string, Map<string, number>>();
        let seen = 0;
        const look = () => {
          for (; seen < started.length; seen++) {
            const { workspace, id } = started[seen]!;
            waiting.get(workspace)?.delete(id);
            for (const [other, ids] of waiting) {
              if (other === workspace || ids.size === 0) continue;
              // A workspace at its own limit of running work waits for itself.
              if (running.filter((one) => one.workspace === other).length >= BOUNDS.runningPerWorkspaceMax) {
                overtaken.delete(other);
                continue;
              }
              const by = overtaken.get(other) ?? new Map<string, number>();
              by.set(workspace, (by.get(workspace) ?? 0) + 1);
              overtaken.set(other, by);
              assert(by.get(workspace)! <= 2, `${other} overtook ${workspace} ${by.get(workspace)} times`);
            }
            overtaken.delete(workspace);
          }
        };
        for (let step = 0; step < 300; step++) {
          if (random.below(10) < 6) {
            // One workspace queues most of the work.
            const workspace = random.below(10) < 7 ? "hog" : `w${random.below(4)}`;
            const { id, result } = add(workspace);
            result.catch(() => {});
            const ids = waiting.get(workspace) ?? new Set();
            waiting.set(workspace, ids.add(id));
          } else if (running.length > 0) {
            const one = running[random.below(running.length)]!;
            if (random.below(10) < 2) one.fail();
            else one.end();
          }
          await settle();
          look();
          assert(running.length <= BOUNDS.runningMax);
        }
        while (running.length > 0) {
          running[0]!.end();
          await settle();
        }
        assert.equal(
          [...waiting.values()].reduce((sum, ids) => sum + ids.size, 0) - (started.length - seen),
          0,
          "some work was not done",
        );
      }),
      { numRuns: 50 },
    );
  });

  it("limits running work, in total and per workspace", async () => {
    const { running, add, settle } = openFairQueue();
    for (let i = 0; i < 4; i++) add("a");
    await settle();
    assert.equal(running.length, 2);
    add("b");
    add("c");
    await settle();
    assert.deepEqual(
      running.map(({ workspace }) => workspace),
      ["a", "a", "b"],
    );
    running[2]!.end();
    await settle();
    assert.equal(running.at(-1)!.workspace, "c");
  });

  it("rejects only work beyond the limit of its workspace's queue", async () => {
    const { queue, add, settle } = openFairQueue();
    for (let i = 0; i < 7; i++) add("a");
    await settle();
    await assert.rejects(add("a").result, (error) => error instanceof Problem && error.code === "workspace_busy");
    assert.equal(queue.rejected, 1);
    assert.equal(queue.waiting, 5);
    add("b");
    add("a", { isContinuation: true });
    assert.equal(queue.waiting, 6);
    // Revocations have a queue of their own.
    add("a", { isUrgent: true });
    assert.equal(queue.waiting, 7);
  });

  it("runs urgent work before other waiting work of the workspace", async () => {
    const { running, started, add, settle } = openFairQueue();
    for (let i = 0; i < 4; i++) add("a");
    const { id } = add("a", { isUrgent: true });
    running[0]!.end();
    await settle();
    assert.equal(started.at(-1)!.id, id);
  });

  it("runs a line that waits for nothing in many turns of the event loop", async () => {
    const queue = new FairQueue({ ...BOUNDS, waitingPerWorkspaceMax: 1_000 });
    let ended = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const held = [1, 2].map(() => queue.run("a", () => promise));
    const works = Array.from({ length: 300 }, () => queue.run("a", async () => void ended++));
    resolve();
    await Promise.all(held);
    for (let turn = 0; ended < works.length; turn++) {
      assert(ended <= BOUNDS.runningMax * (turn + 1), `${ended} in ${turn + 1} turns`);
      await setImmediate();
    }
    await Promise.all(works);
  });

  it("reports whether work waited, and removes idle workspaces", async () => {
    const queue = new FairQueue({ ...BOUNDS, runningMax: 1 });
    const waited: boolean[] = [];
    await Promise.all([1, 2].map(() => queue.run("a", async (hasWaited) => void waited.push(hasWaited))));
    assert.deepEqual(waited, [false, true]);
    assert.equal(queue.waiting, 0);
  });
});
