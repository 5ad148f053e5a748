/** A workspace that queues hundreds of changes: its queue is bounded, and others do not wait behind it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

/** The maximum of running and waiting calls of one workspace. */
const RUNNING_MAX = 3;
const WAITING_MAX = 1_000;

describeOnStores("a workspace that queues changes", (server) => {
  it("gets 429 beyond its queue, while others continue", async () => {
    const busy = await server.workspace("busy");
    const other = await server.workspace("other");
    const gate = Promise.withResolvers<void>();
    const order: string[] = [];
    server.store.interception = async (name, proceed) => {
      if (name === "mutation") await gate.promise;
      return proceed();
    };
    const create = async (workspace: typeof busy, name: string) => {
      const reply = await server.call("apis.createApi", { name }, { as: workspace.key });
      order.push(name);
      return reply;
    };
    const queued = Array.from({ length: RUNNING_MAX + WAITING_MAX }, () => create(busy, "busy"));
    // Cached root keys are authenticated at once, others after a look-up: waits until all calls are queued.
    await server.store.settled();
    const reply = await create(busy, "beyond");
    assert.equal(reply.problem, "workspace_busy");
    assert.equal(reply.headers["retry-after"], "1");
    const beside = create(other, "other");
    await server.store.settled();
    gate.resolve();
    server.store.interception = undefined;
    assert.equal((await beside).status, 200);
    // Workspaces take turns, so few calls come before it. Answers may overtake each other.
    const before = order.indexOf("other");
    assert(before < WAITING_MAX / 4, `${before} were answered before`);
    for (const { status } of await Promise.all(queued)) assert.equal(status, 200);
  });

  it("revokes before other waiting calls, also when the queue is full", async () => {
    const busy = await server.workspace("flooded");
    const victim = await server.ok(
      "rootKeys.createRootKey",
      { name: "victim", permissions: ["apis.*.create_api"] },
      { as: busy.key },
    );
    await server.rejected("apis.createApi", { name: "" }, "invalid_input", { as: victim.key });
    const flood = Array.from({ length: RUNNING_MAX + WAITING_MAX }, () =>
      server.call("apis.createApi", { name: "flood" }, { as: victim.key }),
    );
    await server.ok("rootKeys.deleteRootKey", { rootKeyId: victim.rootKeyId }, { as: busy.key });
    const replies = await Promise.all(flood);
    const made = replies.filter(({ status }) => status === 200).length;
    assert(made <= 2 * RUNNING_MAX, `${made} were made`);
    assert.deepEqual(new Set(replies.map(({ problem }) => problem)), new Set([undefined, "authentication_failed"]));
  });
});
