/** A node whose database a newer release migrates while the node runs. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores } from "../harness.ts";

describeOnStores("a database that a newer release migrates", (server) => {
  const record = (name: string, needs: number) =>
    server.change([], async ({ db }) => {
      await raw`insert into schema_steps (name, executed_at, needs) values (${name}, '2030-01-01T00:00:00.000Z', ${needs})`.execute(
        db,
      );
    });
  const ready = async () => {
    const { status, body } = await server.request("GET", "/health/ready");
    return { status, checks: body.checks ?? {} };
  };

  it("is served while its new steps only add", async () => {
    await record("998-adds", 0);
    await server.pass(15_000);
    assert.deepEqual(await ready(), { status: 200, checks: {} });
  });

  it("is reported by a node that is too old for it, which is not ready any more", async () => {
    await record("999-removes", 998);
    await server.pass(15_000);
    const { status, checks } = await ready();
    assert.equal(status, 503);
    assert.match(checks.schema, /^needs a release of schema 998 or newer; this one is of schema \d+$/);
    const lines = server.logged.filter(({ message }) => message.includes("a newer release has changed the database"));
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, (fields as { needsSchema: number }).needsSchema]),
      [["error", 998]],
    );
  });
});
