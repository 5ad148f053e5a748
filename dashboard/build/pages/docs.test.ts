import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { printDocs } from "./docs.ts";

/** The header of a PNG of 3 by 2 pixels. */
const PNG = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02", "latin1");

const rest = {
  "sdk/README.md": "# SDK\n",
  "clients/python/README.md": "# Python\n",
  "clients/go/README.md": "# Go\n",
  "api/permissions.md": "# Permissions\n",
  "examples/image-api/README.md": "# Images\n",
  "examples/llm-gateway/README.md": "# Gateway\n",
  "examples/litellm-proxy/README.md": "# LiteLLM\n",
  "CHANGELOG.md": "# Changelog\n",
};

function docsOf(t: TestContext, files: Readonly<Record<string, string | Buffer>>) {
  const root = mkdtempSync(join(tmpdir(), "latchkey-docs-"));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [name, content] of Object.entries({ ...rest, ...files })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return printDocs(root, new Set(["keys.verifyKey"]));
}

describe("printing docs/", () => {
  it("orders the pages as the index links them, and forgets none", (t) => {
    const { index, groups } = docsOf(t, {
      "docs/README.md":
        "# All\n\n[not in a group](c.md)\n\n## First\n\n| [b](b.md) | [a](a.md#x) |\n|---|---|\n\n## Second\n\n- [again](a.md), [SDK](../sdk/README.md)\n",
      "docs/a.md": "# A\n",
      "docs/b.md": "# B\n",
      "docs/c.md": "# C\n",
    });
    assert.equal(index.path, "docs");
    const paths = groups.map(({ title, pages }) => [title, pages.map(({ path }) => path)]);
    assert.deepEqual(paths, [
      ["First", ["docs/b", "docs/a"]],
      ["Second", ["docs/typescript-client"]],
      [
        "More",
        [
          "docs/c",
          "docs/python-client",
          "docs/go-client",
          "docs/image-api",
          "docs/llm-gateway",
          "docs/litellm-proxy",
          "docs/permissions",
          "docs/changelog",
        ],
      ],
    ]);
  });

  it("leads links to pages, relative to the page", (t) => {
    const { index, groups, unshown } = docsOf(t, {
      "docs/README.md": "# All\n\n## G\n\n[a](a.md) [b](b.md#part) [errors](../api/problems.md)\n",
      "docs/a.md":
        "# A\n\n[b](b.md#part) [all](README.md) [openapi](../api/openapi.json) [sdk](../sdk/README.md#use) [source](../deploy) [web](https://example.com/)\n\nCall `keys.verifyKey`.\n",
      "docs/b.md": "# B\n\n## Part\n",
      "api/openapi.json": "{}",
      "api/problems.md": "",
    });
    const hrefs = (text: string) => [...text.matchAll(/ href="([^"#][^"]*)"/g)].map(([, href]) => href);
    assert.deepEqual(hrefs(index.content.text), ["docs/a", "docs/b#part", "errors"]);
    const a = groups[0]!.pages[0]!;
    assert.deepEqual(hrefs(a.content.text), [
      "../docs/b#part",
      "../docs",
      "../openapi.json",
      "../docs/typescript-client#use",
      "https://example.com/",
      "../reference/keys.verifyKey",
    ]);
    assert.match(a.content.text, /<span title="In the source: deploy">source<\/span>/);
    assert.deepEqual([...unshown], ["deploy"]);
    assert.match(
      a.markdown,
      /\[b\]\(b\.md#part\) \[all\]\(README\.md\) \[openapi\]\(\.\.\/openapi\.json\) \[sdk\]\(typescript-client\.md#use\)/,
    );
  });

  it("shows the title of a page instead of the name of its file", (t) => {
    const { index } = docsOf(t, {
      "docs/README.md": "# All\n\n## G\n\n[a.md](a.md) [SDK](../sdk/README.md) [problems.md](../api/problems.md)\n",
      "docs/a.md": "# The first page\n",
      "api/problems.md": "",
    });
    assert.match(index.content.text, />The first page<\/a> <a [^>]*>SDK<\/a> <a [^>]*>problems.md<\/a>/);
  });

  it("takes along the images that a page shows, with those of the dark theme", (t) => {
    const { images, groups } = docsOf(t, {
      "docs/README.md": "# All\n\n## G\n\n[a](a.md)\n",
      "docs/a.md": "# A\n\n![one](images/one.png)\n",
      "docs/images/one.png": PNG,
      "docs/images/one-dark.png": PNG,
      "docs/images/other.png": PNG,
    });
    assert.deepEqual([...images.keys()], ["docs/images/one.png", "docs/images/one-dark.png"]);
    assert.match(
      groups[0]!.pages[0]!.content.text,
      /src="\.\.\/docs\/images\/one\.png" alt="one" width="3" height="2"/,
    );
  });

  it("sums a page up by its first sentence, and cuts a long one after a word", (t) => {
    const summaryOf = (text: string) => docsOf(t, { "docs/README.md": `# All\n\n${text}\n` }).index.summary;
    assert.equal(summaryOf("One question: may it? Then more."), "One question: may it?");
    assert.equal(summaryOf("No end"), "No end");
    const words = "operation, ".repeat(30);
    assert.equal(summaryOf(`${words}end.`), `${"operation, ".repeat(14).slice(0, -2)}…`);
    assert.equal(summaryOf(`${"x".repeat(200)}.`), `${"x".repeat(159)}…`);
  });

  it("fails on a link or an image that does not exist", (t) => {
    const index = { "docs/README.md": "# All\n\n## G\n\n[a](a.md)\n" };
    assert.throws(
      () => docsOf(t, { ...index, "docs/a.md": "[b](b.md)" }),
      /docs\/a\.md leads to docs\/b\.md, which does not exist/,
    );
    assert.throws(() => docsOf(t, { ...index, "docs/a.md": "![b](images/b.png)" }), /There is no image/);
    assert.throws(() => docsOf(t, { ...index, "docs/a.md": "![b](../../b.png)" }), /There is no image/);
    assert.throws(() => docsOf(t, { "docs/a.md": "# A" }), /There is no docs\/README\.md/);
  });
});
