/**
 * `npm run test:guides`: the packages of `npm run packages`, each installed into an empty folder outside of the clone, and
 * the guides of a newcomer in one session of a shell, with the oldest Node that the packages promise and the next one.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { version } from "../src/platform/config/version.ts";
import { codeBlocks } from "./code-blocks.ts";
import { needTool, repository, tools } from "./deploy/tools.ts";
import { patternOf } from "./guide.ts";
import { makeFolder, ROOT_KEY, type Server, start } from "./process.ts";
import { freePort } from "./services/free-port.ts";
import { installPackage } from "./services/service.ts";

/** In the order of a newcomer. The first one prepares the folder of all others. */
const newcomer = [
  "getting-started.md",
  "protecting-an-api.md",
  "limits.md",
  "credits.md",
  "budgets.md",
  "plans.md",
  "holds.md",
  "derived-keys.md",
  "roles-and-permissions.md",
  "webhooks.md",
];
const further = [
  "rotating-keys.md",
  "explaining.md",
  "portal.md",
  "events.md",
  "leaks.md",
  "moving.md",
  "moving-from-unkey.md",
  "production.md",
  "security.md",
];
const guides = [...newcomer, ...further];

/**
 * Pages whose commands need a machine, a cluster or a network of one's own, and the tests that run what they are about.
 * Blocks with a name, such as `sh export-kong.sh`, are files: those that ask another system, with its credentials, are
 * written and not run.
 */
const notTyped: Record<string, string> = {
  "api.md": "requests with keys of nobody: server/test/scenarios",
  "backup.md": "needs a bucket, or stops a service: server/src/backup, server/test/database-roles.test.ts",
  "cli.md": "a reference, with keys and files of nobody: server/test/cli-docs.test.ts",
  "dashboard.md": "needs a browser: dashboard/test, server/test/cli-demo.test.ts",
  "deploying.md": "installs packages, units and containers: server/test/deploy",
  "gateways.md":
    "needs a gateway: server/test/proxies/envoy-rate-limits.slow.test.ts, server/test/scenarios/grpc-rate-limits.test.ts",
  "local.md": "needs an edge beside a service: server/test/edges.test.ts, sdk/test/local.test.ts",
  "moving-up.md": "needs PostgreSQL: server/test/migrate-store.slow.test.ts",
  "oauth.md": "requests with keys of nobody: server/test/scenarios/oauth.test.ts",
  "operating.md": "starts a service in the foreground: the guides start one",
  "postgresql.md": "needs PostgreSQL: server/test/database-roles.test.ts",
  "root-keys.md": "commands one by one, on a database: server/test/cli.test.ts",
};
/** The ports in the text of the guides. */
const PORTS = ["3000", "3001", "8080", "8081", "8082"];

const run = promisify(execFile);

/** For a session that hangs, on a busy machine too. */
const SESSION_MAX_MS = 1_800_000;

/** What the packages and their READMEs need beside npm, and the Debian packages that have it. */
const programs = [
  { command: "python3 -m pip --version", debian: "python3-pip" },
  { command: "python3 -c 'import ensurepip'", debian: "python3-venv" },
  { command: "unzip -v", debian: "unzip" },
  { command: "curl --version", debian: "curl" },
];

const packages = join(repository, "dist/packages");
const files: Record<string, { name: string; file: string; folder: string }> = JSON.parse(
  readFileSync(join(repository, "packages.json"), "utf8"),
);

// Sessions wait most of the time.
describe("the packages, outside of the clone", { concurrency: 2 }, () => {
  before(() => {
    for (const { command, debian } of programs) {
      const isThere = () => spawnSync("sh", ["-c", command]).status === 0;
      assert(isThere() || (installPackage(debian) && isThere()), `The test needs ${debian} (Debian: apt-get install).`);
    }
    const options = { cwd: repository, env: inheritedByNpm(), stdio: "pipe" } as const;
    execFileSync("npm", ["run", "packages"], options);
  });

  it("are followed in every guide whose commands can be typed on one machine", () => {
    const typed = readdirSync(join(repository, "docs"))
      .filter((name) => name.endsWith(".md"))
      .filter((name) =>
        codeBlocks(readFileSync(join(repository, "docs", name), "utf8")).some(
          ({ language, name }) => language === "sh" && name === "",
        ),
      );
    assert.deepEqual(typed.sort(), [...guides, ...Object.keys(notTyped)].sort());
  });

  it("are all there, with their checksums", () => {
    const made = readFileSync(join(packages, "SHA256SUMS"), "utf8").trim().split("\n");
    const expected = Object.values(files).map(({ file }) => file.replace("{version}", version));
    assert.deepEqual(made.map((line) => line.split("  ")[1]).sort(), expected.sort());
    execFileSync("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: packages });
  });

  // An import into another API than before needs that its state is removed, so those guides run once.
  it("run the guides in their order and those for newcomers once more in reverse, with Node 20", (t) =>
    new Session(makeFolder(t), "20").run([...guides, ...newcomer.toReversed()]));

  it("run the guides in their order, and each of them alone, with Node 22", (t) =>
    new Session(makeFolder(t), "22").run([...newcomer, ...guides.slice(1).flatMap((guide) => [FORGET, guide])]));

  describe("with a service", () => {
    const [folder, data] = [makeFolder({ after }), makeFolder({ after })];
    let server: Server;
    let variables: NodeJS.ProcessEnv;

    before(async () => {
      server = await start({ directory: data, settings: { WEBHOOK_ALLOW_PRIVATE: "yes" } });
      const { apiId } = await server.ok("apis.createApi", { name: "documents" });
      const { key } = await server.ok("keys.createKey", { apiId, externalId: "acme" });
      const environment = { LATCHKEY_URL: server.address, LATCHKEY_ROOT_KEY: ROOT_KEY, KEY: key };
      variables = { ...process.env, ...environment, PACKAGES: packages };
    });
    after(() => server?.kill("SIGTERM"));

    /** Runs the installation that a README states, and then `commands`, in a folder of its own. Returns what they print. */
    const install = async (readme: string, { name, prepare, program, commands }: Installation): Promise<string> => {
      const own = join(folder, name);
      mkdirSync(own, { recursive: true });
      writeFileSync(join(own, name), program);
      const blocks = codeBlocks(readFileSync(join(repository, readme), "utf8")).filter(({ code }) =>
        code.includes("$PACKAGES"),
      );
      const script = ["set -eu", prepare, ...blocks.map(({ code }) => code), commands].join("\n");
      return (await run("bash", ["-c", script], { cwd: own, env: variables })).stdout;
    };

    it("verify a key in Python", async () => {
      const printed = await install("clients/python/README.md", {
        name: "main.py",
        prepare: "python3 -m venv venv && . venv/bin/activate",
        program: `import os
from latchkey import Latchkey
print(Latchkey().keys.verify_key(key=os.environ["KEY"]).data.code)
`,
        commands: "python main.py",
      });
      assert.match(printed, /^VALID$/m);
    });

    /** Starts the receiver of the guide, sends it an event and a message without a signature, and returns what it prints. */
    const receive = async (
      t: TestContext,
      readme: string,
      name: string,
      prepare: string,
      start: string,
      build = "",
    ) => {
      const port = String(await freePort());
      const [block] = codeBlocks(readFileSync(join(repository, "docs/webhooks.md"), "utf8")).filter(
        (one) => one.name === name,
      );
      const webhook = { endpoint: `http://127.0.0.1:${port}/`, eventTypes: ["key.created"] };
      const { webhookId, secret } = await server.ok("webhooks.createWebhook", webhook);
      t.after(() => server.ok("webhooks.deleteWebhook", { webhookId }));
      const { apiId } = await server.ok("apis.createApi", { name: "webhooks" });
      const call = (operation: string, body: object) =>
        `curl -s -f -o answer "$LATCHKEY_URL/v2/${operation}" -H "Authorization: Bearer $LATCHKEY_ROOT_KEY" ` +
        `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
      return install(readme, {
        name,
        prepare,
        program: block!.code.replaceAll("8082", port),
        commands: `export WEBHOOK_SECRET='${secret}'
${build}
${start} >receiver.log 2>&1 &
trap "kill $!" EXIT
curl -s -o answer --retry 100 --retry-delay 1 --retry-connrefused http://127.0.0.1:${port}/
curl -s -o answer -w '%{http_code}\\n' http://127.0.0.1:${port}/ -d '{"type":"key.created"}'
${call("keys.createKey", { apiId })}
for attempt in $(seq 600); do grep -q key.created receiver.log && break; sleep 0.1; done
cat receiver.log`,
      });
    };

    it("receive an event in Python", async (t) => {
      const prepare = "python3 -m venv venv && . venv/bin/activate";
      const printed = await receive(t, "clients/python/README.md", "receiver.py", prepare, "python receiver.py");
      assert.match(printed, /^401\n/m);
      assert.match(printed, /^key\.created key_\w+$/m);
    });

    it("receive an event in Go", async (t) => {
      const go = needTool(t, tools.go);
      if (go === undefined) return;
      variables.PATH = `${dirname(go)}:${process.env.PATH}`;
      const prepare = "go mod init example.com/guide";
      const build = "go mod tidy && go build -o receiver .";
      const printed = await receive(t, "clients/go/README.md", "receiver.go", prepare, "./receiver", build);
      assert.match(printed, /^401\n/m);
      assert.match(printed, /^key\.created key_\w+$/m);
    });

    it("verify a key in Go", async (t) => {
      const go = needTool(t, tools.go);
      if (go === undefined) return;
      variables.PATH = `${dirname(go)}:${process.env.PATH}`;
      const printed = await install("clients/go/README.md", {
        name: "main.go",
        prepare: "go mod init example.com/guide",
        program: `package main

import (
	"context"
	"fmt"
	"os"

	latchkey "${files.go!.name}"
	_ "${files.gin!.name}"
)

func main() {
	client, err := latchkey.New()
	if err != nil {
		panic(err)
	}
	answer, err := client.Keys.VerifyKey(context.Background(), latchkey.VerifyKeyInput{Key: latchkey.NewSecret(os.Getenv("KEY"))})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Data.Code)
}
`,
        commands: "go mod tidy && go run .",
      });
      assert.match(printed, /^VALID$/m);
    });
  });

  it("have the whole chart, with its version", (t) => {
    const folder = makeFolder(t);
    execFileSync("tar", ["-xzf", join(packages, files.chart!.file), "-C", folder]);
    const chart = join(folder, files.chart!.name);
    const filesOf = (root: string) => globSync("**/*.*", { cwd: root }).sort();
    assert.deepEqual(filesOf(chart), filesOf(join(repository, files.chart!.folder)));
    assert.equal(parse(readFileSync(join(chart, "Chart.yaml"), "utf8")).version, version);
  });
});

interface Installation {
  /** The file in which `program` is. */
  name: string;
  prepare: string;
  program: string;
  commands: string;
}

/** Stops the service and removes everything but what the first section of the first guide makes. */
const FORGET = "(forget)";

/**
 * One person at one terminal: blocks run in one shell, and nothing is cleaned up between guides. What blocks mean:
 *
 * - with a name, such as `js app.mjs`: a file.
 * - `sh`: commands for the shell, which keeps its variables.
 * - `text` and `json` without a name: what the block before prints. `…` stands for any text.
 */
class Session {
  readonly #home: string;
  readonly #node: string;

  constructor(home: string, major: string) {
    this.#home = home;
    this.#node = nodeOf(major);
  }

  async run(steps: readonly string[]): Promise<void> {
    const ports = new Map<string, string>();
    for (const port of PORTS) ports.set(port, String(await freePort()));
    const own = (text: string) => text.replace(/\b(3000|3001|808[012])\b/g, (port) => ports.get(port)!);
    const script = ["set -eu"];
    const expected = new Map<string, { text: string; place: string }>();
    for (const [step, name] of steps.entries()) {
      if (name === FORGET) {
        script.push(...own(FORGETTING).split("\n"));
        continue;
      }
      // The first block of the first guide is typed in the clone.
      if (name === guides[0]) script.push(`cd '${repository}'`);
      let last: string | undefined;
      for (const [i, block] of codeBlocks(readFileSync(join(repository, "docs", name), "utf8")).entries()) {
        const place = `docs/${name}:${block.line}`;
        const code = own(block.code);
        if (block.name !== "") script.push(`cat >'${block.name}' <<'END_OF_FILE'`, `${code.trimEnd()}`, "END_OF_FILE");
        else if (block.language === "sh") {
          last = `${step}-${i}`;
          // The test has done it.
          const commands = code.replace("npm ci && npm run packages", ":");
          script.push(`printf '\\n@@ %s %s\\n' ${last} ${place}`, ...commands.trimEnd().split("\n"));
        } else if (block.language === "text" || block.language === "json") {
          assert(last !== undefined, `the output at ${place} belongs to no block`);
          expected.set(last, { text: code, place });
        }
      }
    }
    const { code, stdout, stderr } = await this.#shell(script.join("\n"), ports.get("3000")!);
    const parts = stdout.split(/^@@ (\S+) (\S+)\n/m);
    const printed = new Map<string, string>();
    for (let i = 1; i < parts.length; i += 3) printed.set(parts[i]!, parts[i + 2]!);
    const place = parts.at(-2);
    assert.equal(code, 0, `the block at ${place} failed:\n${parts.at(-1)}\n${stderr.slice(-4_000)}`);
    for (const [block, { text, place }] of expected) assert.match(printed.get(block)!, patternOf(text), place);
  }

  async #shell(script: string, port: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const file = join(this.#home, "session.sh");
    writeFileSync(file, script);
    const shell = spawn("bash", [file], {
      cwd: repository,
      env: {
        ...inheritedByNpm(),
        HOME: this.#home,
        PATH: `${this.#node}:${process.env.PATH}`,
        LATCHKEY_PORT: port,
        LATCHKEY_DRAIN: "0",
      },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const output = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      shell[stream].setEncoding("utf8").on("data", (text: string) => {
        output[stream] += text;
      });
    }
    // The service runs on after the guides, in the group of the shell, and holds its output open.
    const end = () => {
      try {
        process.kill(-shell.pid!, "SIGKILL");
      } catch {
        // Nothing runs any more.
      }
    };
    const timer = setTimeout(end, SESSION_MAX_MS);
    const closed = once(shell, "close");
    const [code] = (await once(shell, "exit")) as [number | null];
    clearTimeout(timer);
    end();
    await closed;
    return { code, ...output };
  }
}

/** Leaves the folder as the first section of the first guide makes it. */
const FORGETTING = `kill $(jobs -p) 2>/dev/null || true
wait
cd "$HOME/latchkey-guide"
find . -mindepth 1 -maxdepth 1 ! -name node_modules ! -name 'package*.json' ! -name start.sh -exec rm -r {} +
unset API_ID KEY WEBHOOK_SECRET LATCHKEY_ROOT_KEY LATCHKEY_URL`;

/** The folder of the program `node` of a major version, from the package that the npm package `node` installs. */
function nodeOf(major: string): string {
  const folder = join(repository, ".cache", `node-${major}`);
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const bin = join(folder, "node_modules", name, "bin");
  if (!existsSync(join(bin, "node"))) {
    mkdirSync(folder, { recursive: true });
    execFileSync("npm", ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", `${name}@${major}.x`], {
      cwd: folder,
      env: inheritedByNpm(),
      stdio: "pipe",
    });
  }
  return bin;
}

/** The environment without what `npm run` gives to its scripts, and with the cache and the registry of this account. */
function inheritedByNpm(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(LATCHKEY_|npm_|NODE_OPTIONS$|NODE_TEST_CONTEXT$|INIT_CWD$)/.test(name),
  );
  const environment = Object.fromEntries(own);
  const setting = (name: string) =>
    execFileSync("npm", ["config", "get", name], { env: environment, cwd: repository, encoding: "utf8" }).trim();
  return { ...environment, npm_config_cache: setting("cache"), npm_config_userconfig: setting("userconfig") };
}
