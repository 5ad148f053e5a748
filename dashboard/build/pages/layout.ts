import { Html, html } from "./html.ts";
import type { Heading } from "./markdown.ts";

/** Files of the build that every page loads, by their path below the root of the service. */
export interface PageFiles {
  readonly style: string;
  readonly script: string;
  readonly theme: string;
  readonly search: string;
}

/** A link of the navigation at the side. */
export interface NavigationLink {
  readonly path: string;
  readonly title: string;
  /** Words besides the title that the filter finds. */
  readonly words?: string;
  /** Whether the title is a name of code. */
  readonly isCode?: boolean;
}

export interface NavigationGroup {
  readonly title: string;
  readonly links: readonly NavigationLink[];
}

export interface PageOptions {
  /** The address below the root of the service. */
  readonly path: string;
  readonly title: string;
  readonly summary: string;
  /** Which of the links at the top is current. */
  readonly place: "docs" | "reference";
  readonly navigation: readonly NavigationGroup[];
  readonly content: Html;
  /** At the right side. */
  readonly aside?: Html | undefined;
  readonly files: PageFiles;
  /** The address of the page as Markdown. */
  readonly markdownPath?: string | undefined;
}

const icon = (name: string, path: string) =>
  new Html(
    `<svg class="icon-${name}" viewBox="0 0 24 24" width="16" height="16" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${path}</svg>`,
  );

/** Icons of Lucide, as the dashboard has them. */
const icons = {
  search: icon("search", '<path d="m21 21-4.34-4.34"/><circle cx="11" cy="11" r="8"/>'),
  system: icon("system", '<rect width="20" height="14" x="2" y="3" rx="2"/><path d="M8 21h8m-4-4v4"/>'),
  light: icon(
    "light",
    '<circle cx="12" cy="12" r="4"/><path d="M12 2v2m0 16v2M4.93 4.93l1.41 1.41m11.32 11.32 1.41 1.41M2 12h2m16 0h2M6.34 17.66l-1.41 1.41M19.07 4.93l-1.41 1.41"/>',
  ),
  dark: icon(
    "dark",
    '<path d="M20.985 12.486a9 9 0 1 1-9.473-9.472c.405-.022.617.46.402.803a6 6 0 0 0 8.268 8.268c.344-.215.825-.004.803.401"/>',
  ),
};

/** From a page to the root of the service. Relative, because a proxy can have the service below a path. */
export function rootFrom(path: string): string {
  return "../".repeat(path.split("/").length - 1);
}

/** A whole page. It has no inline script and no style, as its policy demands, and can be read without scripts. */
export function printPage({ files, ...page }: PageOptions): string {
  const root = rootFrom(page.path);
  const at = (path: string) => root + path;
  const places = [
    ["docs", "Docs"],
    ["reference", "Reference"],
    ["errors", "Errors"],
  ] as const;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Latchkey</title>
<meta name="description" content="${page.summary}">
<link rel="icon" href="${at("icon.svg")}" type="image/svg+xml">
<script src="${at(files.theme)}"></script>
<link rel="stylesheet" href="${at(files.style)}">
<script type="module" src="${at(files.script)}"></script>
${page.markdownPath !== undefined && html`<link rel="alternate" type="text/markdown" href="${at(page.markdownPath)}">`}
<meta id="react-aria-pressable-style">
</head>
<body class="reader" data-root="${root}" data-search="${at(files.search)}">
<a class="skip" href="#reader-main">Skip to the content</a>
<header class="reader-top">
<button type="button" class="tool narrow-only" id="reader-places-button" aria-expanded="false" aria-controls="reader-places" hidden>Menu</button>
<a class="brand" href="${at("docs")}"><img src="${at("icon.svg")}" alt="" width="20" height="20"><span>Latchkey</span></a>
<nav aria-label="Site" class="site">${places.map(
    ([path, title]) => html`<a href="${at(path)}"${path === page.place && html` aria-current="true"`}>${title}</a>`,
  )}</nav>
<button type="button" class="search-button" id="reader-search-button" aria-haspopup="dialog" aria-label="Search" hidden>
${icons.search}<span>Search</span><kbd>/</kbd></button>
<button type="button" class="tool icon" id="reader-theme-button" hidden>${icons.system}${icons.light}${icons.dark}</button>
<a class="tool wide-only" href="${root === "" ? "./" : root}">Dashboard</a>
</header>
<div class="reader-columns">
<nav id="reader-places" aria-label="Pages" class="places">
<p class="narrow-only more"><a href="${at("errors")}">Errors</a> <a href="${root === "" ? "./" : root}">Dashboard</a></p>
${page.place === "reference" && filterField("reader-places", "Filter operations")}
${page.navigation.map(
  ({ title, links }) =>
    html`<section data-group><h2>${title}</h2><ul>${links.map((link) => {
      const current = link.path === page.path && html` aria-current="page"`;
      return html`<li data-words="${`${link.title} ${link.words ?? ""}`.toLowerCase()}"><a href="${at(link.path)}"${current}${link.isCode && html` class="name"`}>${link.title}</a></li>`;
    })}</ul></section>\n`,
)}</nav>
<main id="reader-main" tabindex="-1">
${page.content}
</main>
${page.aside}
</div>
<dialog id="reader-search" aria-label="Search">
<input id="reader-search-field" type="search" role="combobox" aria-label="Search documents, operations and errors" aria-expanded="true" aria-controls="reader-search-results" aria-autocomplete="list" placeholder="Search documents, operations, errors" autocomplete="off" spellcheck="false">
<div id="reader-search-results" role="listbox" aria-label="Results"></div>
<p id="reader-search-state" role="status">Type to search. ↑ ↓ choose, Enter opens, Esc closes.</p>
</dialog>
</body>
</html>
`.text;
}

/** A field that hides the entries of an element that do not have its words. Scripts show it. */
export function filterField(target: string, label: string): Html {
  return html`<div class="filter-field" hidden><input type="search" data-filter="${target}" aria-label="${label}" placeholder="${label}" autocomplete="off" spellcheck="false"><p role="status"></p></div>`;
}

/** The headings of a page, as links. */
export function printOutline(headings: readonly Heading[]): Html | undefined {
  if (headings.length < 2) return undefined;
  return html`<aside class="on-page"><nav aria-label="On this page"><h2>On this page</h2><ul>${headings.map(
    ({ id, title, level }) => html`<li class="level-${level}"><a href="#${id}">${title}</a></li>`,
  )}</ul></nav></aside>`;
}
