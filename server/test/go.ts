/**
 * `npm run test:go`: the format of the Go client, `go vet`, and its tests against a service that runs for them; the same for
 * its module for Gin.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findTool, repository, tools } from "./deploy/tools.ts";
import { ROOT_KEY, start } from "./process.ts";
import { findFolder } from "./services/service.ts";

const client = join(repository, "clients/go");
const directory = mkdtempSync(join(tmpdir(), "latchkey-test-go-"));
const go = findTool(tools.go);
const environment = { ...process.env, PATH: `${dirname(go)}:${process.env.PATH}` };
// The race detector is linked by a C compiler.
const hasCompiler = findFolder(["gcc"], []) !== undefined;

const server = await start({ directory });
try {
  const unformatted = run("gofmt", ["-l", "."]);
  if (unformatted !== "") fail(`Run gofmt -w on these files:\n${unformatted}`);
  for (const module of [client, join(client, "latchkeygin")]) {
    run("go", ["vet", "./..."], {}, module);
    const variables = {
      CGO_ENABLED: hasCompiler ? "1" : "0",
      LATCHKEY_TEST_URL: server.address,
      LATCHKEY_TEST_ROOT_KEY: ROOT_KEY,
    };
    const report = run("go", ["test", "-count=1", ...(hasCompiler ? ["-race"] : []), "./..."], variables, module);
    process.stdout.write(`${report}\n`);
  }
} finally {
  await server.kill("SIGTERM");
  rmSync(directory, { recursive: true, force: true });
}

/** What a program of Go prints; the end of this one if it fails. */
function run(program: string, args: readonly string[], variables: NodeJS.ProcessEnv = {}, cwd = client): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    env: { ...environment, ...variables },
  });
  if (error) throw error;
  if (status !== 0) fail(`${program} ${args[0]} failed:\n${stdout}${stderr}`);
  return stdout.trim();
}

function fail(message: string): never {
  throw new Error(message);
}
