import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Client } from "pg";
import { makeFolder, run, start } from "./process.ts";
import { freshDatabase, startPostgres } from "./services/postgres.ts";

async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(statement);
  await client.end();
}

describe("a PostgreSQL that may lose acknowledged commits", () => {
  /** Expects `serve` to end with one line that names the settings and the remedy. */
  async function rejects(directory: string, url: string, named: RegExp): Promise<void> {
    const { code, stdout, stderr } = await run(["serve", "--port", "0"], {
      directory,
      settings: { DATABASE_URL: url, DATA_DIR: directory },
    });
    assert.deepEqual([code, stdout], [1, ""], stderr);
    assert.match(stderr, named);
    assert.match(stderr, /^latchkey: [^\n]*alter system set [^\n]*LATCHKEY_ALLOW_UNSAFE_DATABASE=yes[^\n]*\n$/);
  }

  it("by synchronous_commit is rejected, unless it is allowed", async (t) => {
    const { url, drop } = await freshDatabase();
    t.after(drop);
    const directory = makeFolder(t);
    // In effect for the sessions of the service, wherever it was set.
    await execute(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`);
    await rejects(directory, url, /PostgreSQL runs with synchronous_commit = off:/);

    const settings = { DATABASE_URL: url, ALLOW_UNSAFE_DATABASE: "yes" };
    const server = await start({ directory, settings });
    await server.ok("apis.createApi", { name: "allowed" });
    await server.kill("SIGTERM");
    await rejects(directory, url, /synchronous_commit/);
  });

  it("by fsync is rejected, with all problems in one sentence", async (t) => {
    const postgres = await startPostgres({ fsync: "off", synchronous_commit: "off" });
    t.after(() => postgres.stop());
    await rejects(makeFolder(t), postgres.url, /PostgreSQL runs with fsync = off and synchronous_commit = off:/);
  });

  it("is not one whose synchronous_commit is local", async (t) => {
    const { url, drop } = await freshDatabase();
    t.after(drop);
    await execute(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = local`);
    const server = await start({ directory: makeFolder(t), settings: { DATABASE_URL: url } });
    await server.kill("SIGTERM");
  });

  it("is allowed by yes, and by no other value", async (t) => {
    const directory = makeFolder(t);
    const { code, stderr } = await run(["serve"], { directory, settings: { ALLOW_UNSAFE_DATABASE: "true" } });
    assert.deepEqual([code, stderr], [1, "latchkey: LATCHKEY_ALLOW_UNSAFE_DATABASE=true: give yes or no\n"]);
  });
});
