/** A resource server in Python, by Authlib, in front of a service that issues access tokens. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Program, start } from "./process.ts";
import { pythonEnvironment } from "./python-environment.ts";
import { freePort } from "./services/free-port.ts";

const requirements = fileURLToPath(new URL("python/resource-server-requirements.txt", import.meta.url));
const script = fileURLToPath(new URL("python/resource_server.py", import.meta.url));
const audience = "https://documents.example.com";
const otherAudience = "https://billing.example.com";
const CHECKS = 8;

/** Runs the checks of `resource_server.py` once with each algorithm. */
export async function testResourceServer(): Promise<void> {
  const python = join(pythonEnvironment("resource-server", requirements), "python");
  for (const algorithm of ["RS256", "ES256"]) {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-test-resource-server-"));
    const port = await freePort();
    const issuer = `http://127.0.0.1:${port}`;
    const settings = { PUBLIC_URL: issuer, OAUTH_TOKENS: "on", OAUTH_ALGORITHM: algorithm };
    const server = await start({ directory: folder, settings, args: ["--port", String(port)] });
    try {
      const { apiId } = await server.ok("apis.createApi", { name: "documents" });
      await server.ok("apis.updateApi", { apiId, resources: [audience, otherAudience] });
      const create = (more: object) => server.ok("keys.createKey", { apiId, ...more });
      const { key: rootKey, rootKeyId } = await server.ok("rootKeys.createRootKey", {
        name: "resource server",
        permissions: [`apis.${apiId}.verify_key`],
      });
      const others = {
        disabled: (await create({ enabled: false })).key,
        unknown: "3kAqEg4u4qMxCGFAVMuGsb3cijGp",
        "a root key": rootKey,
      };
      const given = {
        issuer,
        audience,
        otherAudience,
        rootKey,
        rootKeyId,
        reader: await create({ externalId: "acme", permissions: ["documents.read", "billing.*"] }),
        writer: await create({ externalId: "acme", permissions: ["documents.write"] }),
        others,
      };
      const program = new Program([script, JSON.stringify(given)], { directory: folder, program: python });
      const { code } = await program.ended;
      assert.equal(code, 0, program.output);
      const checks = program.stdout.trim().split("\n");
      assert.equal(checks.length, CHECKS, program.stdout);
      process.stdout.write(`${algorithm}, a resource server by Authlib: ${checks.join("; ")}\n`);
    } finally {
      await server.kill("SIGTERM");
      rmSync(folder, { recursive: true, force: true });
    }
  }
}
