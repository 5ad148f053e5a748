/** A flood of calls with a root key that is deleted meanwhile: none commits after the deletion was answered. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { eventually, makeFolder, ROOT_KEY, type Server, start } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";

const CALLERS = 40;
/** Calls that are accepted before the deletion, and rejected after its answer. */
const CALLS = 200;

/** All actions of a root key according to the audit log. */
async function eventsBy(server: Server, actor: string): Promise<number> {
  let count = 0;
  for (let cursor: string | undefined; ; ) {
    const { body } = await server.call("audit.listEvents", { actor, limit: 100, ...(cursor && { cursor }) });
    count += body.data.length;
    if (!body.pagination.hasMore) return count;
    cursor = body.pagination.cursor;
  }
}

describe("a flood by a root key", () => {
  for (const store of ["sqlite", "postgres"] as const) {
    it(`commits nothing after the answer to its deletion, on ${store}`, async (t) => {
      const settings: Record<string, string> = {};
      if (store === "postgres") {
        const database = await freshDatabase();
        t.after(() => database.drop());
        settings.DATABASE_URL = database.url;
      }
      const server = await start({ directory: makeFolder(t), settings });
      const { apiId } = await server.ok("apis.createApi", { name: "flooded" });
      const victim = await server.ok("rootKeys.createRootKey", {
        name: "victim",
        permissions: ["rootKeys.*.create_root_key", "apis.*.create_key"],
      });
      let accepted = 0;
      let acceptedLate = 0;
      let rejectedLate = 0;
      let lastAccepted = 0;
      let answeredAt = Number.POSITIVE_INFINITY;
      let isOver = false;
      const flood = Array.from({ length: CALLERS }, async (_, i) => {
        while (!isOver) {
          const sentAt = systemClock.monotonic();
          const { status } =
            i % 2 === 0
              ? await server.call("keys.createKey", { apiId }, victim.key)
              : await server.call(
                  "rootKeys.createRootKey",
                  { name: "heir", permissions: ["apis.*.create_key"] },
                  victim.key,
                );
          const isLate = sentAt > answeredAt;
          if (status !== 200) {
            if (isLate) rejectedLate++;
            continue;
          }
          accepted++;
          if (isLate) acceptedLate++;
          lastAccepted = systemClock.monotonic();
        }
      });
      await eventually("accepted calls", () => accepted >= CALLS);
      const askedAt = systemClock.monotonic();
      await server.ok("rootKeys.deleteRootKey", { rootKeyId: victim.rootKeyId }, ROOT_KEY);
      answeredAt = systemClock.monotonic();
      const committed = await eventsBy(server, victim.rootKeyId);
      await eventually("rejected calls", () => acceptedLate + rejectedLate >= CALLS);
      isOver = true;
      await Promise.all(flood);
      t.diagnostic(
        `${accepted} calls accepted; the deletion took ${(answeredAt - askedAt).toFixed(0)} ms; the last answer to an ` +
          `accepted call came ${(lastAccepted - answeredAt).toFixed(1)} ms after that of the deletion`,
      );
      assert.equal(await eventsBy(server, victim.rootKeyId), committed, "a transaction committed after the answer");
      assert.equal(committed, accepted);
      assert.equal(acceptedLate, 0);
    });
  }
});
