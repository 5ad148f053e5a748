/**
 * `npm run test:python`: the tests of the Python client against a service, and its types and format. The packages that
 * they use are installed into a virtual environment in the cache. Arguments are those of pytest.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Program, ROOT_KEY, start } from "./process.ts";
import { installPackage } from "./services/service.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const client = join(root, "clients/python");
const programs = join(environment(), "bin");
const folder = mkdtempSync(join(tmpdir(), "latchkey-test-python-"));
let isPassed = run(join(programs, "ruff"), ["check", "."]) && run(join(programs, "ruff"), ["format", "--check", "."]);
isPassed = run(join(programs, "mypy"), ["src", "tests"]) && isPassed;
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
process.exitCode = isPassed ? 0 : 1;

/** The folder of the virtual environment, which is made if there is none with these requirements. */
function environment(): string {
  const requirements = join(client, "requirements.txt");
  const hash = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
  const found = join(root, ".cache", `python-client-${hash}`);
  if (existsSync(join(found, "complete"))) return found;
  rmSync(found, { recursive: true, force: true });
  // Debian has the module that installs pip in a package of its own.
  const make = () => run("python3", ["-m", "venv", found]);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements];
  if (!(make() || (installPackage("python3-venv") && make())) || !run(join(found, "bin/python"), pip)) {
    throw new Error("The tests need Python 3.10 or newer with venv and PyPI (Debian: `apt-get install python3-venv`).");
  }
  writeFileSync(join(found, "complete"), "");
  return found;
}

/** Whether a program succeeds. */
function run(program: string, args: readonly string[]): boolean {
  const { status, error } = spawnSync(program, args, { cwd: client, stdio: "inherit" });
  if (error && (error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  return status === 0;
}
