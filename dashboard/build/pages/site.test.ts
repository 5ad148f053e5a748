/** The pages of this repository: every guide and every operation has one, and every link leads somewhere. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { EXAMPLE_URL } from "../../src/reader/example-url.ts";
import type { SearchEntry } from "../../src/reader/search-entry.ts";
import { indexOf } from "../../src/reader/search-index.ts";
import { printDocs } from "./docs.ts";
import { escapeHtml } from "./html.ts";
import type { OpenApi } from "./reference.ts";
import { printSite } from "./site.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const document: OpenApi = JSON.parse(readFileSync(join(root, "api/openapi.json"), "utf8"));
const operations = Object.values(document.paths).map(({ post }) => post);
const assets = { style: "assets/reader.css", script: "assets/reader.js", theme: "assets/theme.js" };

/** The types of the errors, each with a page that the service prints itself. */
const types = [...readFileSync(join(root, "api/problems.md"), "utf8").matchAll(/^\| \d{3} \| `([^`]+)`/gm)].map(
  ([, type]) => type,
);

/** What the service has besides the pages. */
const others = new RegExp(`^(?:$|errors(?:/(?:${types.join("|")}))?$|openapi\\.json$|icon\\.svg$|assets/)`);

describe("the pages of this repository", () => {
  let site: Map<string, string | Uint8Array>;
  let entries: SearchEntry[];
  /** The text of each page by its address. */
  const pages = new Map<string, string>();
  before(() => {
    site = printSite(root, {
      ...assets,
      search(text) {
        entries = JSON.parse(text);
        return "assets/search.json";
      },
    });
    for (const [name, text] of site) {
      if (name.endsWith(".html")) pages.set(name.replace(/(?:\/index)?\.html$/, ""), String(text));
    }
  });

  it("are one for every guide, with its text as Markdown, in the navigation of each", () => {
    const guides = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md") && name !== "README.md");
    assert.ok(guides.length > 20);
    assert.match(String(site.get("llms.txt")), /^# Latchkey\n\n> Latchkey issues, verifies and limits API keys\.\n/);
    for (const [, title, summary] of String(site.get("llms.txt")).matchAll(/^- \[(.*?)\]\(docs\/.*?\): (.*)$/gm)) {
      assert.match(summary!, /^.{5,160}(?<!·.*)[.?!…]$/, `${title}: begin the page with a sentence`);
    }
    for (const guide of guides) {
      const address = `docs/${guide.replace(/\.md$/, "")}`;
      assert.ok(pages.has(address), address);
      assert.ok(String(site.get(`docs/${guide}`)).length > 100, guide);
      assert.ok(pages.get("docs")!.includes(`href="${address}"`), guide);
      assert.ok(String(site.get("llms.txt")).includes(`](docs/${guide})`), guide);
    }
  });

  it("are listed by the index under a heading, every guide", () => {
    assert.doesNotMatch(
      pages.get("docs")!.split("<h2>More</h2>")[1]!.split("</section>")[0]!,
      /href="docs\/(?!python-client|go-client|typescript-client|image-api|llm-gateway|litellm-proxy|permissions|changelog)/,
      "link the page from docs/README.md",
    );
  });

  it("name files that exist, where links lead to no page", () => {
    const { unshown } = printDocs(root, new Set());
    assert.ok(unshown.size > 5);
    assert.deepEqual(
      [...unshown].filter((path) => !existsSync(join(root, path))),
      [],
    );
  });

  it("are printed from the files that a build is said to need, and an image of a container has", async (t) => {
    const { sources } = await import(new URL("../../../server/build/dashboard.js", import.meta.url).href);
    const copy = mkdtempSync(join(tmpdir(), "latchkey-site-"));
    t.after(() => rmSync(copy, { recursive: true }));
    const needed: string[] = sources.filter((path: string) => /\.md$|\.json$|^docs$/.test(path));
    const copied = readFileSync(join(root, ".dockerignore"), "utf8").split("\n");
    for (const path of needed) {
      cpSync(join(root, path), join(copy, path), { recursive: true });
      const [folder = ""] = path.split("/");
      assert.ok(copied.includes(`!${path}`) || copied.includes(`!${folder}`), `.dockerignore leaves out ${path}`);
    }
    const again = printSite(copy, { ...assets, search: () => "assets/search.json" });
    assert.deepEqual([...again.keys()], [...site.keys()]);
  });

  it("have links that lead to a page, and to a heading on it", () => {
    const ids = new Map(
      [...pages].map(([address, text]) => [address, new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
    );
    let count = 0;
    for (const [address, text] of pages) {
      for (const [, href] of text.matchAll(/ (?:href|src)="([^"]+)"/g)) {
        if (/^(?:https?|mailto):/.test(href!)) continue;
        count++;
        const [path = "", fragment] = href!.split("#");
        // The address of a page is relative to its own.
        const target =
          path === ""
            ? address
            : posix
                .join(posix.dirname(address), path)
                .replace(/^\.$|\/$/g, "")
                .replace(/^\.\/?$/, "");
        const isKnown = pages.has(target) || site.has(target) || others.test(target);
        assert.ok(isKnown, `${address} leads to ${href}`);
        if (fragment !== undefined)
          assert.ok(ids.get(target)?.has(fragment), `${address} leads to ${href}: no such heading`);
      }
    }
    assert.ok(count > 5_000, String(count));
  });

  it("are where the texts of the programs say", () => {
    let count = 0;
    for (const folder of ["dashboard/src", "server/src", "server/bin", "cli/src", "sdk/src", "engine/src", "deploy"]) {
      const files = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
      for (const file of files.filter((file) => file.isFile() && !file.name.includes(".test."))) {
        const path = join(file.parentPath, file.name);
        const text = readFileSync(path, "utf8");
        // Only addresses of whole pages: `docs/images/…` are files.
        for (const [, guide, fragment] of text.matchAll(
          /\bdocs\/([a-z-]+)(?:\.md)?(?:#([a-z0-9-]+))?(?![\w/.-]*\/|[\w*]|\.html)/g,
        )) {
          count++;
          const page = pages.get(`docs/${guide}`);
          assert.ok(page !== undefined, `${path} names docs/${guide}`);
          assert.ok(fragment === undefined || page.includes(` id="${fragment}"`), `${path}: docs/${guide}#${fragment}`);
        }
      }
    }
    assert.ok(count > 3, String(count));
  });

  it("have no script and no style inside, and no id twice", () => {
    for (const [address, text] of pages) {
      const withoutData = text.replaceAll(/<script type="application\/json"[^>]*>[^<]*<\/script>/g, "");
      assert.doesNotMatch(withoutData, /<script(?! (?:type="module" )?src=)|<style| style=| on[a-z]+="/, address);
      const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
      assert.deepEqual(ids, [...new Set(ids)], address);
    }
  });

  it("are one for every operation, with its parameters, errors and examples", () => {
    assert.ok(operations.length > 80);
    for (const { operationId: name, summary, requestBody, responses } of operations) {
      const page = pages.get(`reference/${name}`)!;
      assert.ok(page.includes(`<h1>${escapeHtml(summary)}</h1>`), name);
      const { schema } = requestBody.content["application/json"];
      for (const member of Object.keys(schema.properties ?? schema.items?.properties ?? {})) {
        assert.ok(page.includes(`<code class="name">${member}</code>`), `${name}: ${member}`);
      }
      for (const status of Object.keys(responses)) {
        if (status !== "200") assert.ok(page.includes(`<span class="status">${status}</span>`), `${name}: ${status}`);
      }
      for (const language of ["curl", "CLI", "TypeScript", "Python", "Go"]) {
        assert.ok(page.includes(`data-language="${language}"`), `${name}: ${language}`);
      }
      assert.ok(page.includes(EXAMPLE_URL), name);
      assert.ok(pages.get("reference")!.includes(`href="reference/${name}"`), name);
    }
  });

  it("are in the texts of the search, with what their bodies say", () => {
    const find = (words: string) => entries.filter(([, , , text]) => text.includes(words)).map(([address]) => address);
    assert.ok(find("Windows are aligned to the epoch").includes("docs/limits"));
    assert.ok(entries.some(([address]) => address === "reference/keys.verifyKey"));
    assert.ok(entries.some(([address, , title]) => address === "errors/data/key_not_found" && title.includes("404")));
    for (const [address] of entries) {
      const [path = ""] = address.split("#");
      assert.ok(pages.has(path) || others.test(path), address);
    }
  });

  it("are found by the name of an operation, and by each part of it", () => {
    const search = indexOf(entries);
    for (const { operationId: name } of operations) {
      const [, last = ""] = name.split(".");
      const parts = last.split(/(?=[A-Z])/);
      // Its page comes before those that only mention it. Several operations can share a part.
      for (const [words, within] of [
        [name, 1],
        [last, 3],
        [last.toLowerCase(), 3],
        [parts.join(" "), 5],
      ] as const) {
        const found = search(words).map(({ address }) => address);
        assert.ok(found.slice(0, within).includes(`reference/${name}`), `${words}: ${found.slice(0, 8)}`);
      }
    }
    for (const words of ["reroll", "reroll key", "keys.reroll"]) {
      assert.equal(search(words)[0]?.address, "reference/keys.rerollKey", words);
    }
    // A dozen operations have it in their names: their order depends on their texts.
    assert.ok(search("key").some(({ address }) => address === "reference/keys.rerollKey"));
  });
});
