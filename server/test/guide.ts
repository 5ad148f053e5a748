/** Runs the blocks of code of a guide in `docs/`, in their order, against a service of its own. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type CodeBlock, codeBlocks } from "./code-blocks.ts";
import { Program, ROOT_KEY, type Server } from "./process.ts";
import { freePort } from "./services/free-port.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
/** What the guides install besides the client. */
const LIBRARIES = ["hono", "@hono/node-server", "express", "fastify", "@unkey/api", "standardwebhooks"];
/** The address and the port in the text of the guides. */
const GUIDE_ADDRESS = "http://127.0.0.1:3000";
const GUIDE_PORT = "8080";

/** Makes a folder in which programs can import the client as it is published, and what the guides use with it. */
export function installLibraries(folder: string): void {
  const modules = join(folder, "node_modules");
  const client = join(modules, "@latchkey/sdk");
  const sdk = join(repository, "sdk");
  cpSync(join(sdk, "package.json"), join(client, "package.json"));
  const compiler = join(repository, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [compiler, "--project", sdk, "--outDir", join(client, "dist")], { stdio: "pipe" });
  for (const library of LIBRARIES) {
    const installed = join(repository, "node_modules", library);
    mkdirSync(join(modules, library, ".."), { recursive: true });
    symlinkSync(installed, join(modules, library));
  }
}

/** Makes a folder with the commands `latchkey` and `node` below this one, and returns its path. */
export function installCommands(folder: string): string {
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  for (const [name, args] of [
    ["latchkey", `'${join(repository, "server/src/main.ts")}'`],
    ["node", ""],
  ]) {
    writeFileSync(join(bin, name!), `#!/bin/sh\nexec '${process.execPath}' ${args} "$@"\n`);
    chmodSync(join(bin, name!), 0o755);
  }
  return bin;
}

/**
 * A guide. What its blocks mean:
 *
 * - with a name, such as `ts app.ts`: a file. `ts` without one is a program, which runs at once.
 * - `sh`: commands for the shell, which keeps its variables. A line that ends with `&` starts a server on port 8080, in the
 *   place of the one before; `npm install` only checks that the packages are there.
 * - `text` and `json` without a name: what the block before prints. `…` stands for any text.
 */
export class Guide {
  readonly #blocks: readonly CodeBlock[];
  readonly #folder: string;
  readonly #server: Server;

  /** `folder` is one of `installLibraries`. */
  constructor(name: string, folder: string, server: Server) {
    this.#blocks = codeBlocks(readFileSync(join(repository, "docs", name), "utf8"));
    this.#folder = folder;
    this.#server = server;
  }

  /** Runs every block and compares what it prints. Returns the number of blocks. */
  async run(): Promise<number> {
    const port = String(await freePort());
    const own = (text: string) => text.replaceAll(GUIDE_ADDRESS, this.#server.address).replaceAll(GUIDE_PORT, port);
    const script = [PROLOGUE.replaceAll(GUIDE_PORT, port)];
    const expected = new Map<number, string>();
    let last = -1;
    for (const [i, { language, name, code, line }] of this.#blocks.entries()) {
      if (name !== "") writeFileSync(join(this.#folder, name), own(code));
      else if (language === "text" || language === "json") {
        assert.notEqual(last, -1, `the output at line ${line} belongs to no block`);
        expected.set(last, own(code));
      } else if (language === "sh") script.push(`mark ${i}`, ...own(code).split("\n").map(this.#command));
      else if (language === "ts") {
        writeFileSync(join(this.#folder, `block-${i}.ts`), own(code));
        script.push(`mark ${i}`, `node block-${i}.ts`);
      } else assert.fail(`the block at line ${line} has no language that can be run: ${language}`);
      if (name === "" && (language === "sh" || language === "ts")) last = i;
    }
    writeFileSync(join(this.#folder, "guide.sh"), script.join("\n"));
    const environment = {
      PATH: `${installCommands(this.#folder)}:${process.env.PATH}`,
      HOME: this.#folder,
      LATCHKEY_URL: this.#server.address,
      LATCHKEY_ROOT_KEY: ROOT_KEY,
    };
    const ran = new Program(["guide.sh"], { directory: this.#folder, environment, program: "bash" });
    const { code } = await ran.ended;
    const parts = ran.stdout.split(/^@@ (\d+)\n/m);
    const printed = new Map<number, string>();
    for (let i = 1; i < parts.length; i += 2) printed.set(Number(parts[i]), parts[i + 1]!);
    const at = [...printed.keys()].at(-1) ?? 0;
    assert.equal(code, 0, `the block at line ${this.#blocks[at]!.line} failed:\n${printed.get(at)}\n${ran.stderr}`);
    for (const [i, text] of expected) {
      assert.match(printed.get(i)!, patternOf(text), `the block at line ${this.#blocks[i]!.line}`);
    }
    return this.#blocks.length;
  }

  readonly #command = (line: string): string => {
    const [, packages] = /^npm install (.*)$/.exec(line) ?? [];
    if (packages !== undefined) {
      for (const name of packages.split(" ")) {
        assert(existsSync(join(this.#folder, "node_modules", name)), `${name} is not there`);
      }
      return ":";
    }
    const [, server] = /^(.*) &$/.exec(line) ?? [];
    return server === undefined ? line : `serve ${server}`;
  };
}

/** Starts and replaces servers; prints a line before each block. */
const PROLOGUE = String.raw`set -eu
server=
mark() { printf '\n@@ %s\n' "$1"; }
stop() { if [ -n "$server" ]; then kill "$server"; wait "$server" || true; server=; fi; }
trap stop EXIT
serve() {
  stop
  "$@" >server.log 2>&1 &
  server=$!
  for _ in $(seq 200); do
    if (exec 3<>/dev/tcp/127.0.0.1/8080) 2>/dev/null; then return; fi
    kill -0 "$server" 2>/dev/null || { cat server.log >&2; exit 1; }
    sleep 0.05
  done
  cat server.log >&2
  exit 1
}`;

/** The exact text, but for \`…\`, which is any text, and differences of white space. */
function patternOf(text: string): RegExp {
  const words = text.trim().split(/\s+/);
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", "[^]*?"));
  return new RegExp(`^\\s*${escaped.join("\\s+")}\\s*$`);
}
