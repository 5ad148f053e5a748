/** What every document keeps to: links lead somewhere, and each file that a reader has to write is named in the text. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { settings } from "../src/platform/config/settings.ts";
import { problems } from "../src/platform/rpc/problems.ts";
import { codeBlocks } from "./code-blocks.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const patterns = ["*.md", "{api,bench,decisions,docs,sdk,server}/*.md", "{clients,examples}/*/README.md"];
const documents = new Map(
  patterns
    .flatMap((pattern) => globSync(pattern, { cwd: repository }))
    .map((path) => [path, readFileSync(join(repository, path), "utf8")] as const),
);

/** The anchors that a repository's host gives to the headings of a text. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading] of withoutBlocks(text).matchAll(/^#{1,6} +(.*?)[ #]*$/gm)) {
    const words = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = words.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "").replaceAll(" ", "-");
    let unique = anchor;
    for (let i = 1; anchors.has(unique); i++) unique = `${anchor}-${i}`;
    anchors.add(unique);
  }
  return anchors;
}

function withoutBlocks(text: string): string {
  return text.replace(/^( *)(`{3,}|~{3,}).*\n[\s\S]*?^\1\2 *$/gm, "");
}

/** The links of a document that lead nowhere. */
function brokenLinks(path: string, texts: ReadonlyMap<string, string>, exists: (path: string) => boolean): string[] {
  const prose = withoutBlocks(texts.get(path)!).replace(/`[^`\n]*`/g, "``");
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file, anchor] = link.split("#") as [string, string?];
    const target = file === "" ? path : posix.normalize(posix.join(dirname(path), file));
    if (!exists(target)) return true;
    const text = texts.get(target);
    return anchor !== undefined && text !== undefined && !anchorsOf(text).has(anchor);
  });
}

/** The files that a reader has to write, and that the text before them does not name: the name in a fence is invisible. */
function unnamedFiles(text: string): string[] {
  const lines = text.split("\n");
  const blocks = codeBlocks(text);
  const used = blocks.filter(({ language, name }) => language === "sh" && name === "").map(({ code }) => code);
  return blocks.flatMap(({ name, language, line }) => {
    const isWritten = /^(html|js|ts|tsx|python|go)$/.test(language) || used.some((code) => code.includes(name));
    if (name === "" || !isWritten) return [];
    return lines.slice(Math.max(0, line - 5), line - 2).some((text) => text.includes(`\`${name}\``)) ? [] : [name];
  });
}

/** Variables that are not settings of the service: those of clients, of edges, of Compose files and of tests. */
const OTHER_VARIABLES = /^LATCHKEY_(URL|PROFILE|UPSTREAM|IMAGE|PUBLISH|PUBLISH_METRICS|EDGE_KEY|TEST_\w+)$/;
const api: { paths: Record<string, unknown> } = JSON.parse(readFileSync(join(repository, "api/openapi.json"), "utf8"));
const settingNames = new Set(settings.map(({ name }) => `LATCHKEY_${name}`));
const problemTypes: ReadonlySet<string> = new Set(Object.values(problems).map(({ type }) => type));

/** The settings, types of problems and addresses of operations in a text that do not exist. */
function unknownNames(text: string): string[] {
  const found = (pattern: RegExp, isKnown: (name: string) => boolean) =>
    [...text.matchAll(pattern)].map(([, name]) => name!).filter((name) => !isKnown(name));
  const isSetting = (name: string) => settingNames.has(name.replace(/_FILE$/, "")) || OTHER_VARIABLES.test(name);
  return [
    // Not those of which an error says that they do not exist.
    ...found(/\b(LATCHKEY_[A-Z0-9_]*[A-Z0-9])\b(?!: there is no such)/g, isSetting),
    ...found(/`((?:application|authentication|authorization|data|user)\/[a-z_/]+)`/g, (type) => problemTypes.has(type)),
    ...found(/(\/v2\/[a-z][A-Za-z]*\.[a-z][A-Za-z]*)/g, (path) => path in api.paths),
  ];
}

describe("documents", () => {
  it("name settings, problems and operations that exist", () => {
    // Decisions name what was rejected, and the list of changes what was renamed.
    const current = [...documents].filter(([path]) => path !== "CHANGELOG.md" && !path.startsWith("decisions/"));
    const unknown = current.flatMap(([path, text]) => unknownNames(text).map((name) => `${path}: ${name}`));
    assert.deepEqual(unknown, []);
  });

  it("have links and anchors that exist", () => {
    const broken = [...documents.keys()].flatMap((path) =>
      brokenLinks(path, documents, (target) => existsSync(join(repository, target))).map((link) => `${path}: ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  it("name in the text each file that a reader writes", () => {
    const unnamed = [...documents].flatMap(([path, text]) => unnamedFiles(text).map((name) => `${path}: ${name}`));
    assert.deepEqual(unnamed, []);
  });

  it("are all in the index, docs/README.md", () => {
    const index = documents.get("docs/README.md")!;
    const pages = [...documents.keys()].filter((path) => path.startsWith("docs/") && path !== "docs/README.md");
    const missing = pages.filter((path) => !index.includes(`](${path.slice("docs/".length)})`));
    assert.deepEqual(missing, []);
  });

  it("are checked by rules that find faults", () => {
    const texts = new Map([
      ["docs/a.md", "# A `b` (c)\n[x](#a-b-c) [y](b.md#none) [z](c.md) `[code](d.md)`\n```sh\n[e](f.md)\n```\n"],
      ["docs/b.md", "# Some\n"],
    ]);
    assert.deepEqual(
      brokenLinks("docs/a.md", texts, (path) => texts.has(path)),
      ["b.md#none", "c.md"],
    );
    assert.deepEqual(
      unknownNames("LATCHKEY_PORT LATCHKEY_PROT LATCHKEY_ROOT_KEY_FILE `data/nothing` /v2/keys.verifykey"),
      ["LATCHKEY_PROT", "data/nothing", "/v2/keys.verifykey"],
    );
    assert.deepEqual(unnamedFiles("Save as `a.ts`:\n\n```ts a.ts\n1\n```\n\nThen:\n\n```ts b.ts\n2\n```\n"), ["b.ts"]);
  });
});
