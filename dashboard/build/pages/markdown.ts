import GithubSlugger from "github-slugger";
import MarkdownIt, { type Renderer, type Token } from "markdown-it";
import { highlight } from "./highlight.ts";
import { Html, html } from "./html.ts";

/** Where a link of a text leads to. `undefined`: to a file that no page shows; the text remains without a link. */
export type Resolve = (address: string) => string | undefined;

/** An image that pages show. */
export interface Picture {
  readonly address: string;
  /** The picture of the same in the dark theme. */
  readonly darkAddress?: string | undefined;
  readonly width: number;
  readonly height: number;
}

export interface LinkOptions {
  resolve: Resolve;
  /** The title of the page that an address names. It replaces the name of a file as the text of a link. */
  titleOf?(address: string): string | undefined;
  /** Where a piece of code leads to, such as the name of an operation. */
  codeAddress?(code: string): string | undefined;
}

export interface MarkdownOptions extends LinkOptions {
  /** The image that an address names; undefined: there is none. */
  picture?(address: string): Picture | undefined;
}

export interface Heading {
  readonly level: number;
  readonly id: string;
  readonly title: string;
}

/** What is below a heading, as plain text for the search. */
export interface Passage {
  /** Empty: before the first heading. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export interface MarkdownPage {
  /** The text of the first heading. */
  readonly title: string;
  readonly content: Html;
  /** Headings below the title. */
  readonly headings: readonly Heading[];
  readonly passages: readonly Passage[];
}

// HTML in the text is shown as text. Addresses such as `javascript:` are no links.
const parser = new MarkdownIt({ html: false, linkify: false, typographer: false });

/** Prints a Markdown text as HTML. Headings have the ids that GitHub gives them. */
export function printMarkdown(text: string, options: MarkdownOptions): MarkdownPage {
  const tokens = parser.parse(text, {});
  const slugger = new GithubSlugger();
  const headings: Heading[] = [];
  for (const [index, token] of tokens.entries()) {
    if (token.type !== "heading_open") continue;
    const inline = tokens[index + 1]!;
    const title = plainText(inline);
    const id = slugger.slug(title);
    headings.push({ level: Number(token.tag.slice(1)), id, title });
    token.attrSet("id", id);
    if (!inline.children!.some(({ type }) => type === "link_open")) linkHeading(inline, id);
  }
  for (const { children } of tokens) if (children) adaptLinks(children, options);
  const content = new Html(renderer(options).render(tokens, parser.options, {}));
  const [first, ...below] = headings;
  return { title: first?.title ?? "", content, headings: below, passages: passagesOf(tokens, headings) };
}

/** The tokens of a text, for readers of its structure. */
export function parseMarkdown(text: string): Token[] {
  return parser.parse(text, {});
}

/** The text of an inline token without marks. */
export function plainText({ children }: Token): string {
  return children!
    .map(({ type, content }) => (type === "softbreak" || type === "hardbreak" ? " " : type === "image" ? "" : content))
    .join("");
}

/** Makes the text of a heading a link to it, so that its address can be copied. */
function linkHeading(inline: Token, id: string): void {
  const [{ children }] = parser.parseInline("[x](#x)", {}) as [Token];
  const [open, , close] = children as [Token, Token, Token];
  open.attrSet("href", `#${id}`);
  open.attrSet("class", "anchor");
  inline.children = [open, ...inline.children!, close];
}

/** Leads links to their pages. One that leads nowhere becomes a text, with the place in the source as its title. */
function adaptLinks(children: readonly Token[], { resolve, titleOf, codeAddress }: LinkOptions): void {
  let isText = false;
  let isInLink = false;
  for (const [index, token] of children.entries()) {
    if (token.type === "code_inline" && !isInLink) token.meta = { address: codeAddress?.(token.content) };
    if (token.type === "link_open") {
      isInLink = true;
      const address = String(token.attrGet("href"));
      const resolved = address.startsWith("#") ? address : resolve(address);
      isText = resolved === undefined;
      if (resolved !== undefined) {
        token.attrSet("href", resolved);
        if (/^https?:/.test(resolved)) token.attrSet("rel", "noreferrer");
      } else {
        token.tag = "span";
        token.attrs = [["title", `In the source: ${decodeURI(address.replace(/^(?:\.\.?\/)+/, ""))}`]];
      }
      const text = children[index + 1]!;
      if (/\.md$/.test(text.content)) text.content = titleOf?.(address) ?? text.content;
    } else if (token.type === "link_close") {
      // Links do not nest.
      isInLink = false;
      if (isText) token.tag = "span";
    }
  }
}

function renderer({ picture }: Pick<MarkdownOptions, "picture">): Renderer {
  const { renderer } = new MarkdownIt();
  const { rules } = renderer;
  rules.code_inline = (tokens, index) => {
    const { content, meta } = tokens[index]!;
    const code = html`<code>${content}</code>`;
    return (meta?.address === undefined ? code : html`<a href="${String(meta.address)}">${code}</a>`).text;
  };
  rules.fence = (tokens, index) => {
    const { info, content } = tokens[index]!;
    const [language = "", name] = info.trim().split(/\s+/);
    return printCode(content, language, name).text;
  };
  rules.code_block = (tokens, index) => printCode(tokens[index]!.content, "").text;
  rules.table_open = () => `<div class="wide-table" tabindex="0" role="group" aria-label="Table"><table>`;
  rules.table_close = () => "</table></div>";
  rules.image = (tokens, index) => {
    const token = tokens[index]!;
    const address = String(token.attrGet("src"));
    const shown = picture?.(address);
    if (!shown) throw new Error(`There is no image ${address}.`);
    return printPicture(shown, token.content).text;
  };
  return renderer;
}

/** A block of code, with the name of the file that it is. */
export function printCode(code: string, language: string, name?: string): Html {
  return html`<figure class="code">${name && html`<figcaption>${name}</figcaption>`}
<pre tabindex="0"><code>${highlight(code.replace(/\n$/, ""), language)}</code></pre>
<button type="button" data-copy hidden>Copy</button></figure>\n`;
}

function printPicture({ address, darkAddress, width, height }: Picture, text: string): Html {
  const image = (source: string, kind: string) =>
    html`<img src="${source}" alt="${text}" width="${width}" height="${height}" loading="lazy" class="${kind}">`;
  return darkAddress === undefined
    ? image(address, "")
    : html`${image(address, "when-light")}${image(darkAddress, "when-dark")}`;
}

function passagesOf(tokens: readonly Token[], headings: readonly Heading[]): Passage[] {
  const passages: { id: string; title: string; texts: string[] }[] = [{ id: "", title: "", texts: [] }];
  let position = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.type === "heading_open") {
      const { id, title, level } = headings[position++]!;
      passages.push({ id: level === 1 ? "" : id, title, texts: [] });
    } else if (token.type === "inline" && tokens[index - 1]?.type !== "heading_open") {
      passages.at(-1)!.texts.push(plainText(token));
    } else if (token.type === "fence" || token.type === "code_block") {
      passages.at(-1)!.texts.push(token.content);
    }
  }
  return passages
    .map(({ texts, ...rest }) => ({ ...rest, text: texts.join(" ").replaceAll(/\s+/g, " ").trim() }))
    .filter(({ title, text }) => title !== "" || text !== "");
}

/** A sentence of Markdown without paragraphs. */
export function printInline(text: string, options: LinkOptions): Html {
  const tokens = parser.parseInline(text, {});
  adaptLinks(tokens[0]!.children!, options);
  return new Html(renderer({}).render(tokens, parser.options, {}));
}
