import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type MarkdownOptions, printMarkdown } from "./markdown.ts";

const options: MarkdownOptions = {
  resolve: (address) => (address === "nowhere.md" ? undefined : address),
  codeAddress: (code) => (code === "keys.verifyKey" ? "../reference/keys.verifyKey" : undefined),
  picture: (address) => (address === "a.png" ? { address, darkAddress: "b.png", width: 640, height: 480 } : undefined),
};
const print = (text: string) => printMarkdown(text, options);
const printed = (text: string) => print(text).content.text;

describe("printing Markdown", () => {
  it("gives headings the ids that GitHub gives them, and links to them", () => {
    const { title, headings, content } = print(
      "# A title\n\n## Rate `limits`, twice!\n\n### Deep\n\n## Rate limits twice\n",
    );
    assert.equal(title, "A title");
    assert.deepEqual(headings, [
      { level: 2, id: "rate-limits-twice", title: "Rate limits, twice!" },
      { level: 3, id: "deep", title: "Deep" },
      { level: 2, id: "rate-limits-twice-1", title: "Rate limits twice" },
    ]);
    assert.match(
      content.text,
      /<h2 id="rate-limits-twice"><a href="#rate-limits-twice" class="anchor">Rate <code>limits<\/code>, twice!<\/a><\/h2>/,
    );
  });

  it("shows HTML as text, everywhere", () => {
    const script = "<script>alert(1)</script>";
    for (const text of [
      script,
      `- ${script}`,
      `# ${script}`,
      `| a |\n|---|\n| ${script} |`,
      `\`${script}\``,
      `![${script}](a.png)`,
    ]) {
      assert.doesNotMatch(printed(text), /<script/, text);
      assert.match(printed(text), /&lt;script&gt;/, text);
    }
    for (const language of ["", "html", "js", "unknown"]) {
      const code = printed(`\`\`\`${language} <img src=x onerror=alert(1)>\n${script}\n\`\`\`\n`);
      assert.doesNotMatch(code, /<script|<img/, language);
    }
    assert.match(printed('[a](b.md "<b onclick=x>")'), /title="&lt;b onclick=x&gt;"/);
  });

  it("makes no link of an address that runs a script", () => {
    for (const address of [
      "javascript:alert(1)",
      "JavaScript:alert(1)",
      "vbscript:x",
      "data:text/html,x",
      "&#106;avascript:x",
    ]) {
      assert.doesNotMatch(printed(`[a](${address})`), /href/, address);
      assert.doesNotMatch(printed(`<${address}>`), /href/, address);
    }
  });

  it("makes a text of a link that no page answers, with the place in the source", () => {
    assert.equal(
      printed("See [there](nowhere.md)."),
      '<p>See <span title="In the source: nowhere.md">there</span>.</p>\n',
    );
    assert.match(
      printed("[a](b.md) [c](nowhere.md) [d](e.md)"),
      /<a href="b.md">a<\/a> <span [^>]*>c<\/span> <a href="e.md">d<\/a>/,
    );
  });

  it("links code that is the name of an operation, except in links and headings", () => {
    const link = '<a href="../reference/keys.verifyKey"><code>keys.verifyKey</code></a>';
    assert.equal(
      printed("Call `keys.verifyKey`, not `keys.other`."),
      `<p>Call ${link}, not <code>keys.other</code>.</p>\n`,
    );
    assert.equal(printed("[`keys.verifyKey`](a.md)"), '<p><a href="a.md"><code>keys.verifyKey</code></a></p>\n');
    assert.doesNotMatch(printed("## `keys.verifyKey`"), /reference/);
  });

  it("highlights code, names its file, and lets a keyboard scroll it", () => {
    const code = printed('```ts app.ts\nconst a = "<b>";\n```\n');
    assert.match(code, /<figcaption>app.ts<\/figcaption>/);
    assert.match(code, /<pre tabindex="0"><code><span class="hljs-keyword">const<\/span>/);
    assert.match(code, /&quot;&lt;b&gt;&quot;|"&lt;b&gt;"/);
    assert.doesNotMatch(printed("```text\nconst\n```\n"), /hljs|figcaption/);
  });

  it("prints tables that scroll by themselves, and images with their size and both themes", () => {
    assert.match(
      printed("| a | b |\n|---|---|\n| 1 | 2 |"),
      /<div class="wide-table" tabindex="0"[^>]*><table>[\s\S]*<td>2<\/td>[\s\S]*<\/table><\/div>/,
    );
    const image = printed("![A picture](a.png)");
    assert.match(image, /<img src="a.png" alt="A picture" width="640" height="480" loading="lazy" class="when-light">/);
    assert.match(image, /<img src="b.png" alt="A picture" [^>]* class="when-dark">/);
    assert.throws(() => printed("![x](none.png)"), /There is no image none.png/);
  });

  it("collects the text below each heading for the search", () => {
    const { passages } = print(
      "# Title\n\nFirst *words*.\n\n## Next\n\n- `one`\n- two\n\n```sh\nrun it\n```\n\n| a |\n|---|\n| cell |\n",
    );
    assert.deepEqual(passages, [
      { id: "", title: "Title", text: "First words." },
      { id: "next", title: "Next", text: "one two run it a cell" },
    ]);
  });
});
