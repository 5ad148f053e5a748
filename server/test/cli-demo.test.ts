/** `latchkey demo`: a workspace to look at, whose figures agree with one another. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { makeFolder, type RunOptions, run, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const DAY = 86_400_000;
const KEYS = 400;

/** Runs the command and starts a service on what it made. */
async function fill(t: TestContext, settings: Record<string, string>): Promise<{ server: Server; rootKey: string }> {
  const directory = makeFolder(t);
  const options: RunOptions = { directory, settings: { DATA_DIR: `${directory}/data`, ...settings } };
  const args = ["demo", "--keys", String(KEYS), "--json"];
  const made = await run(args, options);
  assert.equal(made.code, 0, made.output);
  const { rootKey, keys, workspaceId, administrator } = JSON.parse(made.stdout);
  assert.equal(keys, KEYS);
  assert.match(administrator, /^lk_root_/);

  const again = await run(args, options);
  assert.equal(again.code, 1);
  assert.match(again.stderr, new RegExp(`^latchkey: The workspace ${workspaceId} .* once per database`));

  const server = await start({ directory, settings, rootKey: null });
  if (settings.DATABASE_URL === undefined) {
    const beside = await run(args, options);
    assert.equal(beside.code, 1);
    assert.match(beside.stderr, /another Latchkey serves from this data folder/);
  }
  return { server, rootKey };
}

async function examine({ server, rootKey }: { server: Server; rootKey: string }): Promise<void> {
  const ok = (name: string, body: object) => server.ok(name, body, rootKey);
  const apis = await ok("apis.listApis", {});
  const now = Date.now();
  const range = { start: now - 30 * DAY, end: now, granularity: "day" };
  let [keys, ofApis, credits] = [0, 0, 0];
  for (const { apiId } of apis) {
    keys += (await ok("apis.countKeys", { apiId })).count;
    const stats = await ok("analytics.getApiStats", { apiId, ...range });
    const today = { start: now - (now % DAY), end: now };
    const hours = await ok("analytics.getApiStats", { apiId, ...today, granularity: "hour" });
    const days = await ok("analytics.getApiStats", { apiId, ...today, granularity: "day" });
    assert.deepEqual(hours.outcomes, days.outcomes);
    assert.equal(hours.creditsSpent, days.creditsSpent);
    const tagged = stats.tags.reduce((sum: number, { total }: { total: number }) => sum + total, 0);
    assert.equal(tagged, stats.total);
    ofApis += stats.total;
    credits += stats.creditsSpent;
  }
  assert.equal(keys, KEYS);
  assert(ofApis > 80 * KEYS && ofApis < 160 * KEYS, String(ofApis));

  const summed = await ok("analytics.listTopIdentities", { ...range, limit: 100 });
  const ofOwners = summed.identities.reduce(
    (sum: number, { creditsSpent }: { creditsSpent: number }) => sum + creditsSpent,
    0,
  );
  assert(ofOwners > 0 && credits >= ofOwners, `${credits} ${ofOwners}`);

  const [{ apiId }] = apis;
  const listed = await ok("apis.listKeys", { apiId, limit: 100, order: "desc" });
  assert(listed.some(({ credits }: { credits?: object }) => credits));
  assert(listed.some(({ ratelimits }: { ratelimits?: object[] }) => ratelimits));
  assert((await ok("apis.countKeys", { apiId, state: "disabled" })).count > 0);
  for (const { keyId, lastUsedAt } of listed.slice(0, 30)) {
    const { series } = await ok("analytics.getKeyStats", {
      keyId,
      ...range,
      start: range.end - (range.end % DAY) - 29 * DAY,
    });
    const last = series.findLast(({ total }: { total: number }) => total > 0)?.time;
    assert.equal(lastUsedAt && lastUsedAt - (lastUsedAt % DAY), last);
  }
  const owner = listed.find(({ identity }: { identity?: object }) => identity).identity.externalId;
  const found = await ok("apis.listKeys", { apiId, search: owner.toUpperCase() });
  assert(found.length > 0);

  const findings = await ok("system.getFindings", {});
  assert(findings.keysExpiring.count > 0);
  assert.equal(findings.rootKeysUnused.length, 2);
  const namespaces = await ok("ratelimits.listNamespaces", {});
  assert.equal(namespaces.length, 3);
  const limited = await ok("analytics.getRatelimitStats", { namespace: namespaces[0].name, ...range });
  assert(limited.denied > 0 && limited.identifiers.length > 0);
  const named = limited.identifiers.every(({ denied, total }: { denied: number; total: number }) => denied <= total);
  assert(named);
  assert((await ok("audit.listEvents", { limit: 10 })).length === 10);
}

describe("latchkey demo", () => {
  it("fills an embedded database once, and not beside a service", async (t) => {
    await examine(await fill(t, {}));
  });

  it("fills PostgreSQL", async (t) => {
    const { url, drop } = await freshDatabase();
    t.after(drop);
    await examine(await fill(t, { DATABASE_URL: url }));
  });

  it("rejects a number of keys or a seed that it cannot use", async (t) => {
    const directory = makeFolder(t);
    for (const option of [
      ["--keys", "99"],
      ["--keys", "many"],
      ["--seed", "-1"],
    ]) {
      const { code, stderr } = await run(["demo", ...option], { directory });
      assert.equal(code, 2);
      assert.match(stderr, new RegExp(`${option.join(" ")}: give a whole number from`));
    }
  });
});
