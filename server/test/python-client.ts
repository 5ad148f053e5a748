/**
 * `npm run test:python`: the tests of the Python client against a service, its types and format, and a resource server in
 * Python. The packages that they use are installed into virtual environments in the cache. Arguments are those of pytest.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repository } from "./deploy/tools.ts";
import { Program, ROOT_KEY, start } from "./process.ts";
import { pythonEnvironment, succeeds } from "./python-environment.ts";
import { testResourceServer } from "./resource-server.ts";

const client = join(repository, "clients/python");
const programs = pythonEnvironment("python-client", join(client, "requirements.txt"));
const folder = mkdtempSync(join(tmpdir(), "latchkey-test-python-"));
const run = (program: string, ...args: string[]) => succeeds(join(programs, program), args, { cwd: client });
const formatted = [".", "../../examples", "../../server/test/python/resource_server.py"];
let isPassed = run("ruff", "check", "--config", "pyproject.toml", ...formatted);
isPassed &&= run("ruff", "format", "--check", "--config", "pyproject.toml", ...formatted);
isPassed = run("mypy", "src", "tests") && isPassed;
const server = await start({ directory: folder });
try {
  const tests = new Program(["-m", "pytest", ...process.argv.slice(2)], {
    directory: client,
    program: join(programs, "python"),
    environment: { LATCHKEY_TEST_URL: server.address, LATCHKEY_TEST_ROOT_KEY: ROOT_KEY },
  });
  const { code } = await tests.ended;
  process.stdout.write(tests.output);
  isPassed &&= code === 0;
} finally {
  await server.kill("SIGTERM");
  rmSync(folder, { recursive: true, force: true });
}
if (process.argv.length === 2) await testResourceServer();
process.exitCode = isPassed ? 0 : 1;
