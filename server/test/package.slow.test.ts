/** The npm package: what it contains, and that it runs in an empty folder with the Node of this machine. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { systemClock } from "../../engine/src/clock/system.ts";
import { version } from "../src/platform/config/version.ts";
import { busyness } from "./busyness.ts";
import { copyRepository } from "./copy-repository.ts";
import { makeFolder } from "./process.ts";

/** Bytes of the unpacked package, without Node. */
const BYTES_MAX = 21_500_000;
/** Time for the way from an empty folder to a verified key. */
const FIRST_VERIFICATION_MAX_MS = 60_000;
/** For a busy machine. */
const TIMEOUT_MS = 8 * FIRST_VERIFICATION_MAX_MS;

describe("the npm package", () => {
  const folder = makeFolder({ after });
  const tarball = `latchkey-${version}.tgz`;

  before(() => {
    runNpm(["pack", "--pack-destination", folder], copyRepository(folder));
    execFileSync("tar", ["-xzf", join(folder, tarball), "-C", folder]);
  });

  const contents = () =>
    readdirSync(join(folder, "package"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));

  it(`has less than ${BYTES_MAX / 1e6} MB`, () => {
    const bytes = contents().reduce((sum, file) => sum + statSync(file).size, 0);
    assert(bytes < BYTES_MAX, `${bytes} bytes`);
  });

  it("contains the command, the bundle, licences and nothing else", () => {
    const files = contents().map((file) => file.slice(join(folder, "package/").length));
    const bundled = files.filter((file) => file.startsWith("dist/") && !file.startsWith("dist/dashboard/"));
    const others = files.filter((file) => !file.startsWith("dist/"));
    assert.deepEqual(others.sort(), [
      "LICENSE",
      "README.md",
      "THIRD-PARTY-NOTICES",
      "bin/latchkey.js",
      "bin/runtime.js",
      "package.json",
    ]);
    const modules = bundled.filter((file) => file.endsWith(".mjs"));
    assert.deepEqual(
      bundled.filter((file) => !modules.includes(file.replace(/\.map$/, ""))),
      [],
    );
    const texts = modules.map((file) => readFileSync(join(folder, "package", file), "utf8"));
    const unused = modules.filter((file) => {
      const name = file.slice("dist/".length);
      return name !== "main.mjs" && !texts.some((text) => text.includes(`/${name}`) || text.includes(`"${name}"`));
    });
    assert.deepEqual(unused, []);
  });

  it("contains the dashboard, compressed", () => {
    const files = contents().map((file) => file.slice(join(folder, "package/dist/dashboard/").length));
    assert(files.includes("index.html.br") && files.includes("docs/images/dashboard-audit-1440.png"));
    const scripts = files.filter((file) => /^assets\/.*\.js\.gz$/.test(file));
    assert(scripts.length > 0);
    for (const script of scripts) assert(files.includes(script.replace(/gz$/, "br")), script);
  });

  it("has the licence of every package that it contains", () => {
    const notices = readFileSync(join(folder, "package/THIRD-PARTY-NOTICES"), "utf8");
    for (const name of ["fastify", "kysely", "pg", "pino", "@redis/client", "zod", "commander", "react", "react-dom"]) {
      assert.match(notices, new RegExp(`^(@[a-z]+/)?${name} \\d[\\d.]* \\(MIT\\)\n\n.`, "m"));
    }
    const sections = notices.split(`\n${"-".repeat(80)}\n`).slice(1);
    const withoutText = sections.filter((section) => section.trim().split("\n").length < 5);
    assert.deepEqual(withoutText, []);
  });

  it("needs no package beside Node", () => {
    const manifest = JSON.parse(readFileSync(join(folder, "package/package.json"), "utf8"));
    assert.equal(manifest.dependencies, undefined);
    assert.deepEqual(
      Object.keys(manifest.optionalDependencies).filter((name) => !/^node-(linux|win)-/.test(name)),
      [],
    );
  });

  /** A folder with the package, in which nothing is installed. Its npm asks the registry only for what this machine never had. */
  const emptyFolder = (t: TestContext): EmptyFolder => {
    const directory = makeFolder(t);
    const cache = join(directory, "npm");
    mkdirSync(cache);
    // Downloads are shared with this machine; installed packages are not.
    symlinkSync(join(runNpm(["config", "get", "cache"], directory).trim(), "_cacache"), join(cache, "_cacache"));
    copyFileSync(join(folder, tarball), join(directory, tarball));
    return {
      directory,
      environment: { ...inheritedByNpm(), npm_config_cache: cache, npm_config_prefer_offline: "true" },
    };
  };

  const runNpx = (args: readonly string[], { directory, environment }: EmptyFolder) =>
    spawnSync("npx", ["--yes", `./${tarball}`, ...args], { cwd: directory, env: environment, encoding: "utf8" });

  it("leads from an empty folder to a verified key in a minute, without a warning", {
    timeout: TIMEOUT_MS,
  }, async (t) => {
    if (!canInstallNode(folder)) {
      t.skip("npm cannot install Node here: there is no registry and no copy in its cache");
      return;
    }
    // How long a registry takes is not the package's: all is downloaded before.
    assert.equal(runNpx(["--version"], emptyFolder(t)).stdout.trim(), version);
    const { directory, environment } = emptyFolder(t);
    const startedAt = systemClock.monotonic();

    const service = spawn("npx", ["--yes", `./${tarball}`], {
      cwd: directory,
      env: { ...environment, LATCHKEY_PORT: "0", LATCHKEY_DRAIN: "0" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const output = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      service[stream].setEncoding("utf8").on("data", (text: string) => {
        output[stream] += text;
      });
    }
    const ended = once(service, "close");
    t.after(async () => {
      // npx, the launcher and the service are one group of processes.
      if (service.exitCode === null && service.signalCode === null) process.kill(-service.pid!, "SIGTERM");
      await ended;
    });
    await new Promise<void>((resolve, reject) => {
      service.stdout.on("data", () => {
        if (/verify the key:\n\n.*\n\n/s.test(output.stdout)) resolve();
      });
      service.once("close", () => reject(new Error(`The service has ended: ${output.stderr}`)));
    });
    const [, url] = /Latchkey is ready at (\S+)/.exec(output.stdout)!;
    const [, rootKeyFile] = /root key is in (\S+)/.exec(output.stdout)!;
    const rootKey = readFileSync(rootKeyFile!, "utf8").trim();
    const latchkey = (...args: string[]) => {
      const environmentOfCall = { ...environment, LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: rootKey };
      const { stdout, stderr } = runNpx([...args, "--json"], { directory, environment: environmentOfCall });
      assert.equal(withoutUserConfigWarnings(stderr), "");
      return JSON.parse(stdout);
    };
    const { apiId } = latchkey("apis", "create-api", "--name", "documents");
    const { key } = latchkey("keys", "create-key", "--api-id", apiId);
    assert.equal(latchkey("verify", key).valid, true);
    const took = systemClock.monotonic() - startedAt;
    t.diagnostic(`${Math.round(took)} ms`);
    assert(took < FIRST_VERIFICATION_MAX_MS * busyness(), `${took} ms`);
    assert.equal(withoutUserConfigWarnings(output.stderr), "");
  });
});

interface EmptyFolder {
  directory: string;
  environment: NodeJS.ProcessEnv;
}

function runNpm(args: readonly string[], cwd: string): string {
  return execFileSync("npm", args, { cwd, env: inheritedByNpm(), encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

function canInstallNode(directory: string): boolean {
  const { optionalDependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const [name, wanted] = Object.entries(optionalDependencies)[0]!;
  try {
    return runNpm(["view", `${name}@${wanted}`, "version", "--prefer-offline"], directory).trim() === wanted;
  } catch {
    return false;
  }
}

/** The environment without what `npm test` gives to its scripts: it would change the npm that a test starts. */
function inheritedByNpm(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(LATCHKEY_|npm_|NODE_OPTIONS$|NODE_TEST_CONTEXT$|INIT_CWD$)/.test(name),
    ),
  );
}

/** npm warns of settings of this machine that it does not know. */
function withoutUserConfigWarnings(text: string): string {
  return text.replaceAll(/^npm warn Unknown user config .*\n/gm, "");
}
