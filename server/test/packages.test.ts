/** The names of packages: `packages.json` states them, and manifests and documents agree with it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { codeBlocks } from "./code-blocks.ts";
import { makeFolder } from "./process.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(join(repository, path), "utf8");
const packages: Record<string, { registry: string; name: string; folder: string; file: string }> = JSON.parse(
  read("packages.json"),
);
const names = new Set(Object.values(packages).map(({ name }) => name));

const documents = new Map(
  ["*.md", "docs/*.md", "server/*.md", "sdk/*.md", "clients/*/README.md", "examples/*/README.md"]
    .flatMap((pattern) => globSync(pattern, { cwd: repository }))
    .map((path) => [path, read(path)]),
);

/** Commands of a document that ask a registry for a package of this repository, as `npm install latchkey` does. */
function asksRegistry(text: string): string[] {
  const lines = codeBlocks(text)
    .filter(({ language }) => language === "sh")
    .flatMap(({ code }) => code.replaceAll("\\\n", " ").split("\n"));
  return lines.filter((line) => {
    const [, command, rest] =
      /^(?:[A-Z_]+=\S* )*(npm install|npm i|npx|pip install|go get|go install) (.*)$/.exec(line) ?? [];
    if (command === undefined || /--prefix/.test(rest!)) return false;
    // In a clone, and where the package was installed, npx finds the command without a registry: `--no` installs nothing.
    if (command === "npx" && rest!.startsWith("--no -- ")) return false;
    return rest!.split(" ").some((word) => names.has(word.replace(/(?<=.)@.*$/, "")));
  });
}

describe("packages.json", () => {
  it("has the names of the manifests", () => {
    const { service, typescript, python, go, gin, chart } = packages;
    assert.equal(JSON.parse(read("server/package.json")).name, service!.name);
    assert.equal(JSON.parse(read("sdk/package.json")).name, typescript!.name);
    assert.equal(/^name = "(.*)"$/m.exec(read("clients/python/pyproject.toml"))![1], python!.name);
    for (const { folder, name } of [go!, gin!]) assert.equal(/^module (.*)$/m.exec(read(`${folder}/go.mod`))![1], name);
    assert.equal(parse(read("deploy/helm/latchkey/Chart.yaml")).name, chart!.name);
  });

  it("has a folder for each, and file names that differ", () => {
    for (const { folder } of Object.values(packages))
      assert.notEqual(globSync(join(repository, folder)).length, 0, folder);
    const files = Object.values(packages).map(({ file }) => file);
    assert.equal(new Set(files).size, files.length);
  });

  it("has every file of dist/packages/ that documents name", () => {
    const files = Object.values(packages).map(({ file }) => file.replace(/\{version\}.*(?=\.whl$)/, "*"));
    for (const [path, text] of documents) {
      for (const [, file] of text.matchAll(/(?:dist\/packages|\$PACKAGES"?)\/([\w.*-]*\w)/g)) {
        assert([...files, "SHA256SUMS"].includes(file!), `${path} names dist/packages/${file}`);
      }
    }
  });
});

describe("the package of the TypeScript client", () => {
  it("has every entry point for programs whose TypeScript does not read `exports`", () => {
    const { main, types, exports, typesVersions } = JSON.parse(read("sdk/package.json"));
    // Its folder has it, so older resolutions find it as it is.
    const { "./package.json": own, ...entries } = exports;
    assert.equal(own, "./package.json");
    const { ".": first, ...others } = entries as Record<string, { require: { types: string; default: string } }>;
    assert.deepEqual({ types, default: main }, first!.require);
    const expected = Object.entries(others).map(([name, { require }]) => [name.replace("./", ""), [require.types]]);
    assert.deepEqual(typesVersions, { "*": Object.fromEntries(expected) });
  });
});

describe("npm run packages", () => {
  const program = fileURLToPath(new URL("../packages.ts", import.meta.url));
  const make = (args: readonly string[], env: NodeJS.ProcessEnv = process.env) =>
    spawnSync(process.execPath, [program, ...args], { env, encoding: "utf8" });

  it("archives the Go client and the chart, the same bytes each time", (t) => {
    const folders = [makeFolder(t), makeFolder(t)];
    const sums = folders.map((folder) => {
      const { status, stderr } = make(["go", "gin", "chart", "--to", folder]);
      assert.equal(status, 0, stderr);
      return readFileSync(join(folder, "SHA256SUMS"), "utf8");
    });
    assert.match(
      sums[0]!,
      new RegExp(`^${["chart", "gin", "go"].map((id) => `[0-9a-f]{64} {2}${packages[id]!.file}\n`).join("")}$`),
    );
    assert.equal(sums[0], sums[1]);
    // Go rejects an archive with another module in it.
    for (const id of ["go", "gin"]) {
      // Each name is in front of its file and in the directory at the end.
      const text = readFileSync(join(folders[0]!, packages[id]!.file), "latin1");
      assert.equal(text.match(/\/go\.mod/g)?.length, 2, id);
    }
  });

  it("leaves out what this machine cannot make, and says why", (t) => {
    const folder = makeFolder(t);
    const { status, stdout, stderr } = make(["python", "go", "chart", "--to", folder], { PATH: folder });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^python .*: not made: it needs Python 3\.10 or newer with pip$/m);
    assert.match(stdout, /^go .*: not made: it needs git, and a clone of the repository$/m);
    assert.equal(readFileSync(join(folder, "SHA256SUMS"), "utf8"), "");
  });

  it("rejects a name that packages.json does not have", () => {
    const { status, stderr } = make(["ruby"]);
    assert.equal(status, 1);
    assert.match(stderr, /no package "ruby": name some of service, typescript, python, go, gin, chart/);
  });
});

describe("programs", () => {
  it("tell nobody to ask a registry for a package that is not published", () => {
    const sources = ["{cli,dashboard,sdk,server}/src/**/*.{ts,tsx}", "clients/**/*.{py,go}", "deploy/**/*.{yaml,txt}"];
    const found = sources
      .flatMap((pattern) => globSync(pattern, { cwd: repository }))
      .flatMap((path) =>
        [...read(path).matchAll(/\b(?:npm install|npm i|npx|pip install|go get|go install) ([\w@./-]+)/g)]
          .filter(([, name]) => names.has(name!.replace(/(?<=.)@.*$/, "")))
          .map(([command]) => `${path}: ${command}`),
      );
    assert.deepEqual(found, []);
  });
});

describe("documents", () => {
  it("ask no registry for a package that is not published", () => {
    const asking = [...documents].flatMap(([path, text]) => asksRegistry(text).map((line) => `${path}: ${line}`));
    assert.deepEqual(asking, []);
    const example =
      "```sh\nnpm install hono @latchkey/sdk\npip install --find-links . latchkey-sdk\nnpx latchkey serve\nnpm ci\n```\n";
    assert.equal(asksRegistry(example).length, 3);
  });
});
