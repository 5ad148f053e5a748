/** The programs of docs/protecting-an-api.md, each behind a server. What a reader types runs in `guides.ts`. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { codeBlocks } from "./code-blocks.ts";
import { installLibraries } from "./guide.ts";
import { eventually, makeFolder, Program, ROOT_KEY, type Server, start } from "./process.ts";
import { freePort } from "./services/free-port.ts";

const docs = new URL("../../docs/", import.meta.url);

describe("the guides", () => {
  const folder = makeFolder({ after });
  before(() => installLibraries(folder));

  describe("docs/protecting-an-api.md", () => {
    const programs = codeBlocks(readFileSync(new URL("protecting-an-api.md", docs), "utf8"))
      .filter(({ name }) => /\.(ts|mjs)$/.test(name))
      .map(({ name, heading, code }) => ({ name, heading, code }));
    let server: Server;

    before(async () => {
      server = await start({ directory: folder });
    });
    after(async () => {
      await server?.kill("SIGTERM");
    });

    for (const { name, heading, code } of programs) {
      it(`protects ${heading}: 401 without a key, 200 with one`, async () => {
        const { apiId } = await server.ok("apis.createApi", { name });
        const { key } = await server.ok("keys.createKey", { apiId, externalId: "acme" });
        const port = String(await freePort());
        writeFileSync(join(folder, name), code.replaceAll("8081", port));
        writeFileSync(join(folder, `serve-${name}`), servingOf(name, port));
        const environment = { API_ID: apiId, LATCHKEY_URL: server.address, LATCHKEY_ROOT_KEY: ROOT_KEY };
        const program = new Program([`serve-${name}`], { directory: folder, environment });
        const get = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${port}/documents`, { headers });
        try {
          let rejected: Response | undefined;
          await eventually("the program answers", async () => {
            assert(!program.hasEnded, program.output);
            rejected = await get({}).catch(() => undefined);
            return rejected !== undefined;
          });
          assert.equal(rejected!.status, 401);
          const response = await get({ authorization: `Bearer ${key}` });
          assert.equal(response.status, 200);
          assert.deepEqual(JSON.parse(await response.text()), { owner: "acme" });
        } finally {
          await program.kill("SIGKILL");
        }
      });
    }
  });
});

/** A program that runs one of the guide, or serves the handler that it exports. */
function servingOf(name: string, port: string): string {
  return `import { serve } from "@hono/node-server";
const handlers = await import("./${name}");
const fetch = handlers.GET ?? handlers.default?.fetch;
if (fetch) serve({ fetch: (request) => fetch(request), port: ${port} });
`;
}
