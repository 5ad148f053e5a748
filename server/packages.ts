/**
 * `npm run packages`: makes every package that `packages.json` names, in `dist/packages/`, with their checksums. What is
 * committed or not ignored is packed. Arguments: the packages to make, such as `service typescript`; without any, all. `--to`
 * names another folder. A package whose tools are missing is left out, and its line says which ones.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

interface Package {
  registry: "npm" | "PyPI" | "Go" | "Helm";
  name: string;
  folder: string;
  file: string;
}

/** A program that this machine lacks. The message names it. */
class Missing extends Error {}

const root = fileURLToPath(new URL("../", import.meta.url));
const version: string = JSON.parse(readFileSync(join(root, "server/package.json"), "utf8")).version;
const packages: Record<string, Package> = JSON.parse(readFileSync(join(root, "packages.json"), "utf8"));

/** Each writes the package to `path`. */
const makers: Record<Package["registry"], (source: Package, path: string) => void> = {
  npm({ name }, path) {
    const output = run("npm", ["pack", "--json", "--workspace", name, "--pack-destination", temporary]);
    // Scripts of the package print before the JSON text.
    const [{ filename }] = JSON.parse(output.slice(output.search(/^\[/m)));
    move(join(temporary, filename), path);
  },

  PyPI(source, path) {
    if (spawnSync("python3", ["-m", "pip", "--version"]).status !== 0)
      throw new Missing("Python 3.10 or newer with pip");
    const wheels = join(temporary, "wheels");
    run("python3", ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, join(root, source.folder)]);
    move(join(wheels, readdirSync(wheels)[0]!), path);
  },

  // The layout that proxies of Go serve: https://go.dev/ref/mod#zip-files.
  Go({ name, folder: from }, path) {
    const options = ["--format=zip", `--prefix=${name}@v${version}/`, "--add-file=LICENSE", `--output=${path}`];
    // A module has no other module in it.
    const others = globSync("*/**/go.mod", { cwd: join(root, from) }).map((file) => `:(exclude)${dirname(file)}`);
    archive(from, options, [".", ...others]);
  },

  Helm({ name, folder: from }, path) {
    archive(from, ["--format=tar.gz", `--prefix=${name}/`, `--output=${path}`]);
  },
};

const { values, positionals } = parseArgs({
  options: { to: { type: "string", default: join(root, "dist/packages") } },
  allowPositionals: true,
});
const folder = resolve(values.to);
const unknown = positionals.find((each) => !Object.hasOwn(packages, each));
if (unknown !== undefined) {
  process.stderr.write(`There is no package "${unknown}": name some of ${Object.keys(packages).join(", ")}.\n`);
  process.exit(1);
}

const temporary = mkdtempSync(join(tmpdir(), "latchkey-packages-"));
try {
  mkdirSync(folder, { recursive: true });
  for (const id of positionals.length === 0 ? Object.keys(packages) : positionals) {
    const source = packages[id]!;
    const path = join(folder, fileOf(source));
    rmSync(path, { force: true });
    process.stdout.write(`${id.padEnd(11)} ${source.name}: ${make(source, path)}\n`);
  }
  writeFileSync(join(folder, "SHA256SUMS"), checksums());
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

/** Makes a package. Returns its path, or why there is none: the others are made all the same. */
function make(source: Package, path: string): string {
  try {
    makers[source.registry](source, path);
    return relative(root, path);
  } catch (error) {
    if (error instanceof Missing) return `not made: it needs ${error.message}`;
    process.exitCode = 1;
    return `failed: ${(error as Error).message.split("\n")[0]}`;
  }
}

/**
 * Archives a folder as it is, without what git ignores. The archive has the time of the last commit: the same files make the
 * same archive.
 */
function archive(from: string, options: readonly string[], paths: readonly string[] = ["."]): void {
  if (spawnSync("git", ["-c", "safe.directory=*", "rev-parse", "HEAD"], { cwd: root }).status !== 0) {
    throw new Missing("git, and a clone of the repository");
  }
  const date = git(["log", "-1", "--format=%cI"]);
  const [name, email] = ["Latchkey", "latchkey@invalid"];
  const environment = {
    GIT_INDEX_FILE: join(temporary, "index"),
    ...{ GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: date },
    ...{ GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email, GIT_COMMITTER_DATE: date },
  };
  git(["read-tree", "HEAD"], environment);
  git(["add", "--all", from], environment);
  const tree = git(["write-tree", `--prefix=${from}/`], environment);
  const commit = git(["commit-tree", "-m", version, tree], environment);
  git(["archive", ...options, commit, "--", ...paths]);
}

function fileOf({ file }: Package): string {
  return file.replace("{version}", version);
}

/** Those of the packages that are there, also if an earlier run made them. */
function checksums(): string {
  const files = Object.values(packages)
    .map(fileOf)
    .filter((file) => existsSync(join(folder, file)));
  const hash = (file: string) =>
    createHash("sha256")
      .update(readFileSync(join(folder, file)))
      .digest("hex");
  return files
    .sort()
    .map((file) => `${hash(file)}  ${file}\n`)
    .join("");
}

/** The temporary folder can be on another disk than the repository. */
function move(from: string, to: string): void {
  copyFileSync(from, to);
  rmSync(from);
}

/** The clone can belong to another user, as in a container. */
function git(args: readonly string[], environment: NodeJS.ProcessEnv = {}): string {
  return run("git", ["-c", "safe.directory=*", ...args], environment);
}

/** What the program prints. Its errors go to the standard error of this one. */
function run(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): string {
  const env = { ...process.env, ...environment };
  return execFileSync(program, args, { cwd: root, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
}
