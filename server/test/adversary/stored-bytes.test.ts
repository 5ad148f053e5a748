/** What a workspace can make the service store, in bytes. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

const MIB = 1024 ** 2;
const DAY = 86_400_000;

describeOnStores(
  "a workspace that writes as much as it can",
  (server) => {
    const sizeOf = async (workspaceId: string) => {
      let bytes = 0;
      for (const table of ["keys", "audit_events", "audit_targets", "events"] as const) {
        for (const row of await server.rowsOf(table)) {
          if ((row as { workspace_id: string }).workspace_id === workspaceId) bytes += JSON.stringify(row).length;
        }
      }
      return bytes;
    };

    const bytesOf = async (workspaceId: string) =>
      ((await server.rowsOf("workspace_bytes")) as { workspace_id: string; bytes: number }[])
        .filter((row) => row.workspace_id === workspaceId)
        .reduce((sum, { bytes }) => sum + Number(bytes), 0);

    it("is stopped at its budget, is told before, can clean up, and gets room as retention passes", async () => {
      const { key: as, workspaceId } = await server.workspace("greedy");
      const { apiId } = await server.ok("apis.createApi", { name: "greedy" }, { as });
      const { keyId } = await server.ok("keys.createKey", { apiId }, { as });
      const write = (i: number) =>
        server.call("keys.createKey", { apiId, meta: { text: `${i}`.padEnd(60_000, "x") } }, { as });
      // What replaces metadata of the same size takes no more than an entry of the audit log and an event.
      const before = await bytesOf(workspaceId);
      const { keyId: large } = (await write(0)).body.data;
      const added = (await bytesOf(workspaceId)) - before;
      await server.ok("keys.updateKey", { keyId: large, meta: { text: "0".padEnd(60_000, "y") } }, { as });
      const replaced = (await bytesOf(workspaceId)) - before - added;
      assert(added > 60_000 && replaced < 10_000, `${added}, ${replaced}`);
      const near = () => server.ok("events.listEvents", { types: ["quota.near"] }, { as });
      let accepted = 0;
      let nearAt: number | undefined;
      for (;;) {
        const reply = await write(accepted);
        if (reply.status !== 200) {
          assert.equal(reply.problem, "workspace_quota_exceeded");
          assert.match(reply.body.error.detail, /stored bytes \(LATCHKEY_BYTES_PER_WORKSPACE\)/);
          break;
        }
        accepted++;
        if (nearAt === undefined && (await near()).length > 0) nearAt = accepted;
        assert((await sizeOf(workspaceId)) < 2 * MIB, `${accepted} changes`);
      }
      assert(accepted > 3, `${accepted}`);
      assert(nearAt !== undefined && nearAt < accepted, `told at ${nearAt} of ${accepted}`);
      const events = await near();
      assert.equal(events.length, 1);
      const { quota, used, max, setting } = events[0].data;
      assert.deepEqual(
        { quota, max, setting },
        { quota: "bytes", max: 2 * MIB, setting: "LATCHKEY_BYTES_PER_WORKSPACE" },
      );
      assert(used > 0.8 * max && used <= max);
      // Small changes of this workspace stop too, and nobody else's.
      for (let i = 0; (await create(as, apiId, i)).problem !== "workspace_quota_exceeded"; i++) assert(i < 1_000);
      await server.createApi("beside it");
      await server.scrape();
      await server.store.settled();
      const metrics = await server.scrape();
      assert.match(metrics, /^latchkey_workspaces_near_quota\{quota="bytes"\} 1$/m);
      assert.match(metrics, /^latchkey_quota_rejections_total\{quota="bytes"\} [1-9]/m);
      // What revokes is accepted, from a reserve; metered calls are not concerned.
      await server.ok("keys.updateKey", { keyId, enabled: false }, { as });
      await server.ok("keys.deleteKey", { keyId }, { as });
      await server.rejected("keys.createKey", { apiId }, "workspace_quota_exceeded", { as });

      await server.change([], ({ db }) =>
        db
          .updateTable("workspace_bytes")
          .set(({ eb }) => ({ day: eb("day", "-", 3) }))
          .where("workspace_id", "=", workspaceId)
          .where("kind", "=", "audit")
          .execute(),
      );
      await server.ok("keys.createKey", { apiId }, { as });
      await server.pass(5_000);
      await server.scrape();
      await server.store.settled();
      assert.match(await server.scrape(), /^latchkey_workspaces_near_quota\{quota="bytes"\} 0$/m);
    });
    const create = (as: string, apiId: string, i: number) =>
      server.call("keys.createKey", { apiId, name: `${i}` }, { as });

    it("has sums of bytes by day, which are deleted after their retention", async () => {
      const { workspaceId } = server;
      await server.change([], ({ db }) =>
        db
          .insertInto("workspace_bytes")
          .values([
            { workspace_id: "ws_gone", kind: "events", day: Math.floor(server.clock.now() / DAY) - 40, bytes: 1 },
            { workspace_id: workspaceId, kind: "events", day: Math.floor(server.clock.now() / DAY) - 2, bytes: 1 },
          ])
          .execute(),
      );
      await server.pass(81_000);
      const rows = (await server.rowsOf("workspace_bytes")) as { workspace_id: string; bytes: number }[];
      assert(!rows.some(({ workspace_id }) => workspace_id === "ws_gone"));
      assert(rows.some(({ bytes }) => Number(bytes) === 1));
    });
  },
  { BYTES_PER_WORKSPACE: "2m", RETENTION_AUDIT: "2d", RETENTION_EVENTS: "30d" },
);
