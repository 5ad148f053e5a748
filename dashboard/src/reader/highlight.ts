import highlighter from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import go from "highlight.js/lib/languages/go";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";

for (const [name, language] of Object.entries({ bash, go, json, python, typescript })) {
  highlighter.registerLanguage(name, language);
}

/** Code as HTML, with classes for the kinds of its words; undefined: the language is not known. */
export function highlightCode(code: string, language: string): string | undefined {
  if (!highlighter.getLanguage(language)) return undefined;
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}
