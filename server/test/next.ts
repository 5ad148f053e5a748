/**
 * `npm run test:next`: an application of Next.js with the route of sdk/README.md, outside of the clone. It is built without
 * settings, as an image is, and then started with them.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeBlocks } from "./code-blocks.ts";
import { repository } from "./deploy/tools.ts";
import { eventually, Program, ROOT_KEY, start } from "./process.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-test-next-"));
const app = join(folder, "app");
const layout = `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
`;
const { LATCHKEY_URL: _, LATCHKEY_ROOT_KEY: __, ...withoutSettings } = process.env;
const environment = { ...withoutSettings, NEXT_TELEMETRY_DISABLED: "1" };

try {
  const block = codeBlocks(readFileSync(join(repository, "sdk/README.md"), "utf8")).find(
    ({ heading }) => heading === "Next.js",
  );
  assert(block, "sdk/README.md has no program for Next.js");
  cpSync(join(repository, "sdk/test/next"), folder, { recursive: true });
  const pack = npm(["pack", "--json", "--pack-destination", folder], join(repository, "sdk"));
  npm(["ci", "--no-audit", "--no-fund"], folder);
  npm(["install", "--no-save", "--no-audit", "--no-fund", `./${JSON.parse(pack)[0].filename}`], folder);

  const server = await start({ directory: folder });
  try {
    const { apiId } = await server.ok("apis.createApi", { name: "next" });
    const limit = { name: "requests", limit: 1, duration: 86_400_000, autoApply: true };
    const { key, keyId } = await server.ok("keys.createKey", { apiId, ratelimits: [limit] });
    mkdirSync(join(app, "hello"), { recursive: true });
    writeFileSync(join(app, "layout.tsx"), layout);
    writeFileSync(join(app, "hello/route.ts"), block.code.replace("api_123", apiId));
    run(["build"]);

    const program = new Program([join(folder, "node_modules/next/dist/bin/next"), "start", "--port", "0"], {
      directory: folder,
      program: "node",
      environment: { ...environment, LATCHKEY_URL: server.address, LATCHKEY_ROOT_KEY: ROOT_KEY },
    });
    try {
      let address: string | undefined;
      await eventually("Next.js listens", () => {
        if (program.hasEnded) throw new Error(program.output);
        address = /http:\/\/localhost:\d+/.exec(program.stdout)?.[0];
        return address !== undefined;
      });
      const get = (headers: Record<string, string>) => fetch(`${address}/hello`, { headers });
      assert.equal((await get({})).status, 401);
      const passed = await get({ authorization: `Bearer ${key}` });
      assert.deepEqual([passed.status, await passed.text()], [200, `Hello ${keyId}`]);
      assert.equal((await get({ authorization: `Bearer ${key}` })).status, 429);
    } finally {
      await program.kill("SIGKILL");
    }
  } finally {
    await server.kill("SIGTERM");
  }
  process.stdout.write("next build without settings, and 401, 200, 429 from next start\n");
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function npm(args: readonly string[], cwd: string): string {
  return execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

function run(args: readonly string[]): void {
  const next = join(folder, "node_modules/next/dist/bin/next");
  execFileSync("node", [next, ...args], { cwd: folder, env: environment, stdio: "inherit" });
}
