/**
 * `npm run test:clickhouse`: the suite of the rollups on a real ClickHouse from the package chdb. The package is large,
 * so it is not a dependency: it is installed into the cache on demand.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSION = "3.4.0";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, ".cache", `chdb-${VERSION}`);
if (!existsSync(join(folder, "node_modules", "chdb", "package.json"))) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"private":true}\n');
  run("npm", ["install", "--no-audit", "--no-fund", "--save-exact", `chdb@${VERSION}`], folder);
}
const suite = join(root, "server", "test", "clickhouse", "rollups.ts");
run(process.execPath, ["--test", suite], root, { LATCHKEY_TEST_CHDB: folder });

function run(program: string, args: readonly string[], cwd: string, environment: NodeJS.ProcessEnv = {}): void {
  const { status, error } = spawnSync(program, args, {
    cwd,
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
