import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SearchEntry } from "../../src/reader/search-entry.ts";
import { type DocsPage, printDocs } from "./docs.ts";
import { html } from "./html.ts";
import { type PageFiles, printOutline, printPage, rootFrom } from "./layout.ts";
import type { Passage } from "./markdown.ts";
import { type OpenApi, printReference } from "./reference.ts";

interface SiteFiles extends Omit<PageFiles, "search"> {
  /** Writes the texts for the search; returns the path of the file. */
  search(text: string): string;
}

/** How many guides the page of an operation names. */
const GUIDES_MAX = 5;

/** Every page with its file: `docs/limits.html` is at `/docs/limits`, `docs/limits.md` is its text. */
export function printSite(root: string, { search, ...files }: SiteFiles): Map<string, string | Uint8Array> {
  const document: OpenApi = JSON.parse(readFileSync(join(root, "api/openapi.json"), "utf8"));
  const names = Object.values(document.paths).map(({ post }) => post.operationId);
  const docs = printDocs(root, new Set(names));
  const guides = docs.groups.flatMap(({ pages }) => pages);
  const reference = printReference(document, (operation) =>
    guides
      .filter(({ source }) => source.startsWith("docs/"))
      .map((page) => ({ page, count: page.markdown.split(operation).length - 1 }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
      .slice(0, GUIDES_MAX)
      .map(({ page }) => page),
  );
  const entries = [
    ...[docs.index, ...guides].flatMap(({ path, title, passages }) => entriesOf(path, title, passages)),
    ...reference.pages.flatMap(({ path, title, passages }) => entriesOf(path, title, passages)),
    ...problemsOf(readFileSync(join(root, "api/problems.md"), "utf8")),
  ];
  const pageFiles: PageFiles = { ...files, search: search(JSON.stringify(entries)) };

  const site = new Map<string, string | Uint8Array>();
  const docsNavigation = [
    { title: "", links: [{ path: docs.index.path, title: docs.index.title }] },
    ...docs.groups.map(({ title, pages }) => ({
      title,
      links: pages.map((page) => ({ path: page.path, title: page.title })),
    })),
  ];
  const docsPage = (page: Omit<DocsPage, "source" | "passages" | "markdown">, markdownPath?: string) =>
    printPage({
      ...page,
      content: html`<article class="prose">${page.content}</article>`,
      place: "docs",
      navigation: docsNavigation,
      files: pageFiles,
      aside: printOutline(page.headings),
      markdownPath,
    });
  for (const [index, page] of [docs.index, ...guides].entries()) {
    const all = [docs.index, ...guides];
    const markdownPath = page === docs.index ? "docs/README.md" : `${page.path}.md`;
    const content = html`${page.content}${printNeighbours(page, all[index - 1], all[index + 1])}`;
    site.set(
      page === docs.index ? "docs/index.html" : `${page.path}.html`,
      docsPage({ ...page, content }, markdownPath),
    );
    site.set(markdownPath, page.markdown);
  }
  site.set("docs/404.html", docsPage(missingPage));
  for (const [path, content] of docs.images) site.set(path, content);
  for (const page of reference.pages) {
    const file = page.path === "reference" ? "reference/index.html" : `${page.path}.html`;
    site.set(file, printPage({ ...page, place: "reference", navigation: reference.navigation, files: pageFiles }));
  }
  site.set("llms.txt", printLlms(docs.index, docs.groups, reference.navigation));
  return site;
}

/** Shown at addresses one level below `/docs`. */
const missingPage = {
  path: "docs/404",
  title: "No such page",
  summary: "There is no such page.",
  headings: [],
  content: html`<h1>There is no such page</h1><p>The address may be incomplete, or belong to another version of the service.
The search at the top looks through every page. <a href="../docs">All documents</a></p>`,
};

function printNeighbours(page: DocsPage, before: DocsPage | undefined, after: DocsPage | undefined) {
  const root = rootFrom(page.path);
  const link = (to: DocsPage | undefined, label: string, kind: string) =>
    to && html`<a class="${kind}" href="${root}${to.path}"><span>${label}</span>${to.title}</a>`;
  return html`<nav class="neighbours" aria-label="Neighbouring pages">${link(before, "Previous", "previous")}${link(after, "Next", "next")}</nav>`;
}

function entriesOf(path: string, page: string, passages: readonly Passage[]): SearchEntry[] {
  return passages.map(({ id, title, text }) => [id === "" ? path : `${path}#${id}`, page, title || page, text]);
}

/** The problems of the table in api/problems.md, whose pages the service prints itself. */
function problemsOf(table: string): SearchEntry[] {
  return [...table.matchAll(/^\| (\d{3}) \| `([^`]+)` \| ([^|]+) \| (.*) \|$/gm)].map(
    ([, status, type, title, text]) => [
      `errors/${type}`,
      "Errors",
      `${type} (${status} ${title!.trim()})`,
      text!.replaceAll("<br>", " ").replaceAll("|", " "),
    ],
  );
}

/** The index for language models: https://llmstxt.org. */
function printLlms(
  index: DocsPage,
  groups: readonly { title: string; pages: readonly DocsPage[] }[],
  operations: ReturnType<typeof printReference>["navigation"],
): string {
  const guides = groups.map(
    ({ title, pages }) =>
      `## ${title}\n\n${pages.map((page) => `- [${page.title}](${page.path}.md): ${page.summary}`).join("\n")}\n`,
  );
  const names = operations.flatMap(({ title, links }) => links.map((link) => `\`${title}.${link.title}\``));
  return `# Latchkey

> ${index.summary}

${guides.join("\n")}
## API

- [OpenAPI document](openapi.json): every operation with its schemas, examples and errors. An operation is \`POST /v2/<name>\`
- Operations: ${names.join(", ")}
`;
}
