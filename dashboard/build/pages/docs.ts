import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import type { Html } from "./html.ts";
import { type Heading, type Passage, type Picture, parseMarkdown, plainText, printMarkdown } from "./markdown.ts";
import { operationAddress } from "./reference.ts";

/** A page below `/docs`. */
export interface DocsPage {
  /** Its address below the root of the service: `docs`, or `docs/limits`. */
  readonly path: string;
  /** The file in the repository that it is printed from. */
  readonly source: string;
  readonly title: string;
  /** The first sentence as plain text, or the beginning of it. */
  readonly summary: string;
  readonly content: Html;
  readonly headings: readonly Heading[];
  readonly passages: readonly Passage[];
  /** The text with links that work at the address of the page with `.md`. */
  readonly markdown: string;
}

/** Pages under a heading of the index. */
export interface DocsGroup {
  readonly title: string;
  readonly pages: readonly DocsPage[];
}

export interface Docs {
  readonly index: DocsPage;
  readonly groups: readonly DocsGroup[];
  /** Files of images by their path below the root of the service. */
  readonly images: ReadonlyMap<string, Uint8Array>;
  /** Files and folders of the repository that links name and no page shows. */
  readonly unshown: ReadonlySet<string>;
}

const INDEX = "docs/README.md";

/** Characters of a summary, which search engines and the index for language models show beside the title. */
const SUMMARY_MAX = 160;

/** Files outside of docs/ that have a page too, so that a machine without internet has them. */
const others: Readonly<Record<string, { readonly path: string; readonly title: string }>> = {
  "sdk/README.md": { path: "docs/typescript-client", title: "TypeScript client" },
  "clients/python/README.md": { path: "docs/python-client", title: "Python client" },
  "clients/go/README.md": { path: "docs/go-client", title: "Go client" },
  "examples/image-api/README.md": { path: "docs/image-api", title: "A complete program" },
  "examples/llm-gateway/README.md": { path: "docs/llm-gateway", title: "A gateway for language models" },
  "examples/litellm-proxy/README.md": { path: "docs/litellm-proxy", title: "LiteLLM's proxy" },
  "api/permissions.md": { path: "docs/permissions", title: "Permissions" },
  "CHANGELOG.md": { path: "docs/changelog", title: "Changes" },
};

/** Files of the repository that the running service shows elsewhere. */
const shownElsewhere: Readonly<Record<string, string>> = {
  "README.md": "docs",
  "api/openapi.json": "openapi.json",
  "api/operations.txt": "reference",
  "api/problems.md": "errors",
};

/** Where the pages that no heading of the index lists are in the navigation. */
const REST = "More";

/**
 * Prints every file of docs/, and a few others. The headings and links of docs/README.md give the groups and the order.
 *
 * @throws {Error} if a text shows an image or leads to a file of docs/ that does not exist.
 */
export function printDocs(root: string, operations: ReadonlySet<string>): Docs {
  const guides = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  const paths = new Map(
    [
      ...guides.map((name) => [`docs/${name}`, `docs/${name.slice(0, -".md".length)}`] as const),
      ...Object.entries(others).map(([source, { path }]) => [source, path] as const),
    ].map(([source, path]) => [source, source === INDEX ? "docs" : path]),
  );
  const texts = new Map([...paths.keys()].map((source) => [source, readFileSync(join(root, source), "utf8")]));
  const titles = new Map(
    [...texts].map(([source, text]) => [source, others[source]?.title ?? /^# (.+)$/m.exec(text)?.[1]]),
  );
  const images = new Map<string, Uint8Array>();
  const unshown = new Set<string>();
  const pages = new Map([...paths].map(([source, path]) => [source, printPage(texts.get(source)!, source, path)]));
  const index = pages.get(INDEX);
  if (!index) throw new Error(`There is no ${INDEX}: it gives the order of the pages.`);
  const listed = listedPages(texts.get(INDEX)!);
  const known = new Set([INDEX, ...listed.flatMap(({ sources }) => sources)]);
  const rest = [...paths.keys()].filter((source) => !known.has(source));
  const groups = [...listed, { title: REST, sources: rest }]
    .map(({ title, sources }) => ({ title, pages: sources.flatMap((source) => pages.get(source) ?? []) }))
    .filter((group) => group.pages.length > 0);
  return { index, groups, images, unshown };

  function printPage(text: string, source: string, path: string): DocsPage {
    const up = "../".repeat(path.split("/").length - 1);
    const { title, content, headings, passages } = printMarkdown(text, {
      resolve: (address) => resolve(address, source, (target) => up + target),
      titleOf: (address) => titles.get(targetOf(address, source)),
      codeAddress: operationAddress(path, operations),
      picture: (address) => readPicture(posix.join(posix.dirname(source), address), up),
    });
    return {
      path,
      source,
      title: others[source]?.title ?? title,
      summary: summaryOf(passages[0]?.text || passages[1]?.text || ""),
      content,
      headings: headings.filter(({ level }) => level === 2 || level === 3),
      passages,
      markdown: withLinks(text, source),
    };
  }

  /** The address of what a link names, by `at`; undefined if no page shows it. */
  function resolve(address: string, source: string, at: (path: string) => string): string | undefined {
    if (/^[a-z][a-z0-9+.-]*:/i.test(address)) return address;
    const [, fragment] = address.split("#");
    const target = targetOf(address, source);
    const path = paths.get(target) ?? shownElsewhere[target] ?? (images.has(target) ? target : undefined);
    if (path !== undefined) return at(path) + (fragment === undefined ? "" : `#${fragment}`);
    // Others need not be there: images of containers are built without most of the repository.
    if (target.startsWith("docs/")) throw new Error(`${source} leads to ${target}, which does not exist.`);
    unshown.add(target);
    return undefined;
  }

  function readPicture(file: string, up: string): Picture | undefined {
    if (!file.startsWith("docs/images/") || !existsSync(join(root, file))) return undefined;
    const content = readFileSync(join(root, file));
    images.set(file, content);
    const dark = file.replace(/\.png$/, "-dark.png");
    const hasDark = existsSync(join(root, dark));
    if (hasDark) images.set(dark, readFileSync(join(root, dark)));
    return { address: up + file, darkAddress: hasDark ? up + dark : undefined, ...sizeOf(content, file) };
  }

  /** The text with the addresses of Markdown pages in its links. */
  function withLinks(text: string, source: string): string {
    let isCode = false;
    return text
      .split("\n")
      .map((line) => {
        if (/^ *(?:```|~~~)/.test(line)) isCode = !isCode;
        if (isCode) return line;
        return line.replaceAll(/(?<!!)\]\(([^)\s#:]+)(#[^)\s]*)?\)/g, (link, address: string, fragment = "") => {
          const path = resolve(address, source, (target) => target);
          if (path === undefined) return link;
          // Every page with `.md` is in the folder `docs`.
          const isPage = [...paths.values()].includes(path);
          const name = path === "docs" ? "README.md" : isPage ? `${path.slice("docs/".length)}.md` : `../${path}`;
          return `](${name}${fragment})`;
        });
      })
      .join("\n");
  }
}

/** The first sentence of a text, or as many of its first words as a line of a list of results has. */
function summaryOf(text: string): string {
  const sentence = /^.*?[.?!](?= |$)/.exec(text)?.[0] ?? text;
  if (sentence.length <= SUMMARY_MAX) return sentence;
  const begin = sentence.slice(0, SUMMARY_MAX);
  return `${begin.replace(/[^\p{L}\p{N})]*(?: \S*|.)$/u, "")}…`;
}

/** The file that an address in another file names. */
function targetOf(address: string, source: string): string {
  return posix.join(posix.dirname(source), decodeURI(address.split("#")[0]!)).replace(/\/$/, "");
}

/** The sources that an index links to, by its headings of the second level. */
function listedPages(index: string): { title: string; sources: string[] }[] {
  const groups: { title: string; sources: string[] }[] = [];
  const seen = new Set<string>();
  const tokens = parseMarkdown(index);
  for (const [position, token] of tokens.entries()) {
    if (token.type === "heading_open" && token.tag === "h2") {
      groups.push({ title: plainText(tokens[position + 1]!), sources: [] });
    }
    for (const child of token.children ?? []) {
      if (child.type !== "link_open") continue;
      const source = targetOf(String(child.attrGet("href")), INDEX);
      if (!source.endsWith(".md") || seen.has(source)) continue;
      seen.add(source);
      groups.at(-1)?.sources.push(source);
    }
  }
  return groups;
}

/** The size of a PNG, from its header (RFC 2083, section 3.2). */
function sizeOf(content: Buffer, file: string): { width: number; height: number } {
  if (content.toString("latin1", 1, 4) !== "PNG") throw new Error(`${file} is no PNG.`);
  return { width: content.readUInt32BE(16), height: content.readUInt32BE(20) };
}
