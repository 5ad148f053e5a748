/** Changes on one node while another one is frozen in the middle of several. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { openTestServer } from "../harness.ts";
import { freshDatabase } from "../services/postgres.ts";
import { TcpProxy } from "../tcp-proxy.ts";

/** As many changes of a workspace as a node makes at once. */
const CHANGES = 3;
/** Changes of the living node: which of the waiting ones PostgreSQL lets go on first is chance. */
const OWN_CHANGES = 6;

it("a node that is frozen in several changes lets another one make its own (rule 215)", async (t) => {
  const database = await freshDatabase();
  const proxy = await TcpProxy.open(database.url);
  const living = await openTestServer({ store: "postgres", settings: { DATABASE_URL: database.url } });
  const frozen = await openTestServer({ store: "postgres", beside: living, settings: { DATABASE_URL: proxy.url } });
  t.after(async () => {
    await frozen.close();
    await living.close();
    await proxy.close();
    await database.drop();
  });
  const apiId = await living.createApi();
  await frozen.createKey(apiId);

  // Each has locked what all changes of the workspace lock at their end, or waits for it, and gets no answer any more.
  const sent = Promise.withResolvers<void>();
  let muted = 0;
  proxy.filter = (bytes) => {
    if (!bytes.includes('insert into "workspace_usage"')) return "pass";
    if (++muted === CHANGES) sent.resolve();
    return "mute";
  };
  const lost = Array.from({ length: CHANGES }, () => frozen.call("keys.createKey", { apiId }));
  await sent.promise;
  // Its connections stay open, as those of a process that is stopped.
  proxy.blackhole(true);
  const made = Array.from({ length: OWN_CHANGES }, () => living.call("keys.createKey", { apiId }));
  const statuses = (await Promise.all(made)).map(({ status }) => status);
  assert.deepEqual(statuses, Array(OWN_CHANGES).fill(200));
  proxy.filter = () => "pass";
  for (const { status } of await Promise.all(lost)) assert([200, 503].includes(status));
});
