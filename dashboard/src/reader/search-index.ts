import MiniSearch from "minisearch";
import type { SearchEntry } from "./search-entry.ts";

/** A passage that matches. */
export interface Found {
  readonly id: number;
  readonly address: string;
  readonly page: string;
  readonly title: string;
  readonly text: string;
}

const RESULTS_MAX = 20;

/** The search in these passages: the best ones first. */
export function indexOf(passages: readonly SearchEntry[]): (text: string) => Found[] {
  const entries = passages.map(([address, page, title, text], id): Found => ({ id, address, page, title, text }));
  const index = new MiniSearch<Found>({
    fields: ["title", "page", "text"],
    tokenize: (text) => wordsOf(text).flatMap((word) => [...new Set([word, ...partsOf(word)])]),
    searchOptions: {
      boost: { title: 4, page: 2 },
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      // What was changed matters less than what is.
      boostDocument: (id) => (entries[id as number]?.address.startsWith("docs/changelog") ? 0.2 : 1),
      combineWith: "AND",
      tokenize: wordsOf,
    },
  });
  index.addAll(entries);
  return (text) => {
    // Passages with some of the words come after those with all of them.
    const ids = [...index.search(text), ...index.search(text, { combineWith: "OR" })].map(({ id }) => id as number);
    return [...new Set(ids)].slice(0, RESULTS_MAX).flatMap((id) => entries[id] ?? []);
  };
}

function wordsOf(text: string): string[] {
  return text.split(/[^\p{L}\p{N}_.]+/u);
}

/** `keys.verifyKey` is found as `keys`, `verifyKey`, `verify` and `Key` too. */
function partsOf(word: string): string[] {
  return word
    .split(".")
    .flatMap((name) => [name, ...name.split(/_|(?<=[a-z])(?=[A-Z])/)])
    .filter(Boolean);
}
