/** What the tests of guides and examples share. */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../", import.meta.url));
/** What the guides install besides the client. */
const LIBRARIES = ["hono", "@hono/node-server", "express", "fastify"];

/** Makes a folder in which programs can import the client as it is published, and what the guides use with it. */
export function installLibraries(folder: string): void {
  const modules = join(folder, "node_modules");
  const client = join(modules, "@latchkey/sdk");
  const sdk = join(repository, "sdk");
  cpSync(join(sdk, "package.json"), join(client, "package.json"));
  const compiler = join(repository, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [compiler, "--project", sdk, "--outDir", join(client, "dist")], { stdio: "pipe" });
  execFileSync(process.execPath, [join(sdk, "bundle-local.js"), join(client, "dist")], { stdio: "pipe" });
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

/** The exact text, but for `…`, which is any text, and differences of white space. */
export function patternOf(text: string): RegExp {
  const words = text.trim().split(/\s+/);
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", "[^]*?"));
  return new RegExp(`^\\s*${escaped.join("\\s+")}\\s*$`);
}
