import highlighter from "highlight.js/lib/core";
import css from "highlight.js/lib/languages/css";
import ini from "highlight.js/lib/languages/ini";
import javascript from "highlight.js/lib/languages/javascript";
import nginx from "highlight.js/lib/languages/nginx";
import sql from "highlight.js/lib/languages/sql";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { highlightCode } from "../../src/reader/highlight.ts";
import { escapeHtml, Html } from "./html.ts";

/** Languages of the documents, beside those that the examples have. */
for (const [name, language] of Object.entries({ css, ini, javascript, nginx, sql, xml, yaml })) {
  highlighter.registerLanguage(name, language);
}

/** Names in fences that highlight.js does not know. */
const aliases: Readonly<Record<string, string>> = { caddyfile: "nginx", jsonl: "json", toml: "ini" };

/** Code with classes for the kinds of its words. Code in an unknown language, or in none, is only escaped. */
export function highlight(code: string, language: string): Html {
  return new Html(highlightCode(code, aliases[language] ?? language) ?? escapeHtml(code));
}
