/** A tenant with the maximum number of overrides, chosen to be slow to search, beside an innocent tenant. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { makeFolder, ROOT_KEY } from "../process.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const COUNT = 10_000;
const CALLS = 1_600;
const CALLS_AT_ONCE = 16;
const RELOADS = 10;
const MINUTE = 60_000;

const a = (length: number) => "a".repeat(length);
/**
 * Half of the patterns have one asterisk and match the longest identifier; the others have eight asterisks, and nearly
 * match.
 */
const hostile = [
  ...Array.from({ length: 100 }, (_, i) => `*${`${a(20 + (i % 30))}*`.repeat(6)}${a(40 + i)}b*`),
  ...Array.from({ length: COUNT - 100 }, (_, i) => `${a(1 + (i % 256))}*${a(1 + Math.floor(i / 256))}`),
];

describe("a tenant with 10,000 hostile patterns", () => {
  it("stalls no other tenant, neither by look-ups nor by reading the patterns", async (t) => {
    const directory = makeFolder(t);
    const server = await startMonitored({ directory });
    const limit = (namespace: string, identifier: string) =>
      server.ok("ratelimits.limit", { namespace, identifier, limit: 1_000_000, duration: MINUTE });
    await limit("hostile", "first");
    await limit("innocent", "first");
    const [{ id }] = await server.ok("ratelimits.listNamespaces", { search: "hostile" });
    // Inserted directly, because setting them one by one takes too long for a test.
    const database = new DatabaseSync(join(directory, "data", "latchkey.db"), { timeout: 5_000 });
    const { workspace_id } = database.prepare("select workspace_id from ratelimit_namespaces where id = ?").get(id)!;
    database.exec("begin immediate");
    const insert = database.prepare(
      'insert into ratelimit_overrides (id, workspace_id, namespace_id, identifier, "limit", duration, created_at) values (?, ?, ?, ?, 1000000, 60000, 1)',
    );
    for (const [i, identifier] of hostile.entries()) insert.run(`rlor_${i}`, workspace_id!, id, identifier);
    database.exec("commit");
    database.close();

    const innocent = {
      operation: "ratelimits.limit",
      bodies: [{ namespace: "innocent", identifier: "user_1", limit: 1_000_000, duration: MINUTE }],
      rootKey: ROOT_KEY,
    };
    const measured = await measureBeside(server, innocent, async () => {
      for (let reload = 0; reload < RELOADS; reload++) {
        // Each change makes the service read the overrides again.
        const changed = { namespace: "hostile", identifier: hostile[0], limit: 1 + reload, duration: MINUTE };
        await server.ok("ratelimits.setOverride", changed);
        for (let made = 0; made < CALLS / RELOADS; made += CALLS_AT_ONCE) {
          await Promise.all(Array.from({ length: CALLS_AT_ONCE }, (_, i) => limit("hostile", a(512 - i))));
        }
      }
    });
    const { overrideId } = await limit("hostile", a(512));
    assert(overrideId, "the hostile patterns were not in effect");
    report(t, `${CALLS} calls of a tenant with ${COUNT} hostile patterns, which are read ${RELOADS} times`, measured);
    assertUnharmed(measured);
  });
});
