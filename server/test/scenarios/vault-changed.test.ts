/** A node that was left out when the master key of the vault was changed. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores, VAULT_KEY } from "../harness.ts";

describeOnStores(
  "a vault whose master key a node lacks",
  (server) => {
    const ready = async () => {
      const { status, body } = await server.request("GET", "/health/ready");
      return [status, body.status, body.checks?.vault];
    };
    const lines = () =>
      server.logged.filter(({ message }) => message.includes("the master key of the vault was changed"));

    it("is reported until the node has it (rule 241)", async () => {
      const [vault] = (await server.rowsOf("vault")) as { fingerprint: string }[];
      assert(vault, "the vault has been used");
      const change = (fingerprint: string) =>
        server.change([], ({ db }) => raw`update vault set fingerprint = ${fingerprint}`.execute(db));
      await server.pass(15_000);
      assert.deepEqual(await ready(), [200, "ok", undefined]);
      await change("of another master key");
      await server.pass(25_000);
      const [status, text, trouble] = await ready();
      assert.deepEqual([status, text], [200, "degraded"]);
      assert.match(trouble, /set LATCHKEY_VAULT_KEY/);
      assert.deepEqual(
        lines().map(({ level }) => level),
        ["error"],
      );
      await change(vault.fingerprint);
      await server.pass(15_000);
      assert.deepEqual(await ready(), [200, "ok", undefined]);
    });
  },
  { VAULT_KEY },
);
