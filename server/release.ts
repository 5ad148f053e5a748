/**
 * `npm run release -- minor`: sets the version of all workspaces, of the Python client and of the Helm chart, gives the "Unreleased" section of
 * CHANGELOG.md its name, prints generated files again, commits and tags. Pushing the tag publishes
 * (`.github/workflows/release.yml`).
 */
import { execFileSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const USAGE = `Usage: npm run release -- major|minor|patch|X.Y.Z [--dry-run]
       npm run release -- notes X.Y.Z     prints the section of CHANGELOG.md`;

const root = fileURLToPath(new URL("../", import.meta.url));
const manifest = "server/package.json";
const changelog = "CHANGELOG.md";
const pythonVersion = "clients/python/src/latchkey/_version.py";
const ginModule = "clients/go/latchkeygin/go.mod";
const chart = "deploy/helm/latchkey/Chart.yaml";

/** What stops a release. The message says what to do. */
class ReleaseError extends Error {}

try {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(2),
    options: { "dry-run": { type: "boolean", default: false } },
    allowPositionals: true,
  });
  if (positionals[0] === "notes" && positionals.length === 2) {
    process.stdout.write(`${sectionOf(read(changelog), positionals[1]!.replace(/^v/, ""))}\n`);
  } else if (positionals.length === 1) {
    release(positionals[0]!, values["dry-run"]);
  } else {
    throw new ReleaseError(USAGE);
  }
} catch (error) {
  const isExpected =
    error instanceof ReleaseError || (error as NodeJS.ErrnoException).code?.startsWith("ERR_PARSE_ARGS_") === true;
  if (!isExpected) throw error;
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}

function release(step: string, isDryRun: boolean): void {
  const version = nextVersion(JSON.parse(read(manifest)).version, step);
  const tag = `v${version}`;
  // The version of a Go module in a folder is a tag with the folder.
  const tags = [tag, `clients/go/${tag}`, `clients/go/latchkeygin/${tag}`];
  const notes = sectionOf(read(changelog), "Unreleased");
  if (!/^- /m.test(notes)) {
    throw new ReleaseError(
      `${changelog} has nothing under "Unreleased": write what callers and operators have to know.`,
    );
  }
  checkRepository(tags);

  const changed = edits(version);
  if (isDryRun) {
    const files = [...changed.keys()].map((path) => `  ${path}`).join("\n");
    process.stdout.write(`Would set ${version} in\n${files}\nand commit and tag ${tag} with\n\n${notes}\n`);
    return;
  }
  try {
    for (const [path, text] of changed) writeFileSync(join(root, path), text);
    execFileSync(process.execPath, [join(root, "server/generate.ts")], { cwd: root, stdio: "inherit" });
    git("add", "--all");
    git("commit", "--quiet", "--message", `Release ${version}`);
  } catch (error) {
    // The tree was clean, so this only takes back what was written above.
    git("reset", "--quiet", "--hard");
    throw error;
  }
  // Headings begin with "#", which git would remove as comments.
  for (const each of tags) {
    git("tag", "--annotate", "--cleanup=whitespace", "--message", `Latchkey ${version}\n\n${notes}`, each);
  }
  process.stdout.write(`Committed and tagged ${tag}. Publish it: git push --atomic origin main ${tags.join(" ")}\n`);
}

function nextVersion(current: string, step: string): string {
  const parts = current.split(".").map(Number);
  const place = ["major", "minor", "patch"].indexOf(step);
  if (place !== -1) return parts.map((part, i) => (i < place ? part : i === place ? part + 1 : 0)).join(".");
  if (!/^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/.test(step)) throw new ReleaseError(USAGE);
  if (step.localeCompare(current, "en", { numeric: true }) < 0) {
    throw new ReleaseError(`${step} is older than ${current}, the version in ${manifest}.`);
  }
  return step;
}

function checkRepository(tags: readonly string[]): void {
  const branch = git("branch", "--show-current");
  if (branch !== "main") throw new ReleaseError(`Releases are made on main, and this is ${branch || "no branch"}.`);
  const dirty = git("status", "--porcelain");
  if (dirty !== "") throw new ReleaseError(`The tree has changes: commit or remove them first.\n${dirty}`);
  const tag = tags.find((each) => git("tag", "--list", each) !== "");
  if (tag !== undefined) throw new ReleaseError(`The tag ${tag} exists: choose another version.`);
}

/** The new text of each file that contains the version, by its path. */
function edits(version: string): Map<string, string> {
  const { workspaces } = JSON.parse(read("package.json")) as { workspaces: string[] };
  const folders = workspaces.flatMap((pattern) => globSync(pattern, { cwd: root }));
  const lock = JSON.parse(read("package-lock.json")) as {
    version: string;
    packages: Record<string, { version: string }>;
  };
  lock.version = version;
  for (const folder of ["", ...folders]) lock.packages[folder]!.version = version;
  const today = new Date().toISOString().slice(0, 10);
  return new Map([
    ...["", ...folders].map((folder): [string, string] => {
      const path = join(folder, "package.json");
      return [path, replaceOnce(path, /^( {2}"version": )".*"/m, `$1"${version}"`)];
    }),
    ["package-lock.json", `${JSON.stringify(lock, null, 2)}\n`],
    [
      chart,
      read(chart)
        .replace(/^version: .*$/m, `version: ${version}`)
        .replace(/^appVersion: .*$/m, `appVersion: "${version}"`),
    ],
    [ginModule, replaceOnce(ginModule, /^(\tgithub.com\/latchkey\/latchkey\/clients\/go) v.*$/m, `$1 v${version}`)],
    [pythonVersion, replaceOnce(pythonVersion, /^VERSION = ".*"$/m, `VERSION = "${version}"`)],
    [changelog, replaceOnce(changelog, /^## Unreleased$/m, `## Unreleased\n\n## ${version} (${today})`)],
  ]);
}

function replaceOnce(path: string, what: RegExp, by: string): string {
  const text = read(path);
  if (!what.test(text)) throw new ReleaseError(`${path} has no line like ${what}: correct it.`);
  return text.replace(what, by);
}

/** The text of one section of a changelog, without its heading. */
function sectionOf(text: string, name: string): string {
  const sections = text.split(/^## /m).slice(1);
  const section = sections.find((each) => each.split("\n", 1)[0]!.split(" ", 1)[0] === name);
  if (section === undefined) throw new ReleaseError(`${changelog} has no section "## ${name}".`);
  return section.slice(section.indexOf("\n")).trim();
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
}
