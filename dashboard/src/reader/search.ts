import { one } from "./elements.ts";
import { loadPart } from "./part.ts";
import type { SearchEntry } from "./search-entry.ts";
import { type Found, indexOf } from "./search-index.ts";

/** Characters of a passage that a result shows. */
const EXCERPT_LENGTH = 160;

/** Searches the texts of all pages while one types. The texts are read once. */
export function bindSearchField(dialog: HTMLDialogElement, { root, texts }: { root: string; texts: URL }): void {
  const field = one<HTMLInputElement>("#reader-search-field", dialog);
  const list = one("#reader-search-results", dialog);
  const state = one("#reader-search-state", dialog);
  const hint = state.textContent;
  const index = loadPart(() => readIndex(texts), state);
  let chosen = 0;

  const options = () => [...list.children] as HTMLElement[];
  const choose = (next: number) => {
    const all = options();
    chosen = Math.max(0, Math.min(all.length - 1, next));
    for (const [at, option] of all.entries()) option.setAttribute("aria-selected", String(at === chosen));
    const option = all[chosen];
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };
  const show = async () => {
    const text = field.value.trim();
    const search = await index;
    // Another letter was typed meanwhile.
    if (!search || text !== field.value.trim()) return;
    const found = text === "" ? [] : search(text);
    list.replaceChildren(...found.map((one, at) => printResult(one, at, root, text)));
    state.textContent =
      text === ""
        ? hint
        : found.length === 0
          ? `Nothing matches “${text}”.`
          : found.length === 1
            ? "1 result"
            : `${found.length} results`;
    choose(0);
  };
  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      choose(chosen + step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      options()[chosen]?.click();
    } else if (event.key === "Escape") {
      // The browser would clear the field first.
      event.preventDefault();
      dialog.close();
    }
  });
  // A result on this page only moves the window.
  list.addEventListener("click", () => dialog.close());
  void show();
}

async function readIndex(texts: URL): Promise<(text: string) => Found[]> {
  const response = await fetch(texts);
  if (!response.ok) throw new Error(`The service answered with ${response.status}.`);
  return indexOf((await response.json()) as SearchEntry[]);
}

function printResult({ address, page, title, text }: Found, at: number, root: string, wanted: string): HTMLElement {
  const link = document.createElement("a");
  link.id = `result-${at}`;
  link.href = root + address;
  link.role = "option";
  link.tabIndex = -1;
  const head = document.createElement("strong");
  head.textContent = title;
  const place = document.createElement("span");
  place.textContent = page;
  const excerpt = document.createElement("p");
  excerpt.append(...marked(excerptOf(text, wanted), wanted));
  link.append(head, title === page ? "" : place, excerpt);
  return link;
}

/** The part of a text with the most of the words. */
function excerptOf(text: string, wanted: string): string {
  const lower = text.toLowerCase();
  const words = wordsOf(wanted);
  let best = { start: 0, count: 0 };
  for (const word of words) {
    for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1)) {
      const part = lower.slice(at, at + EXCERPT_LENGTH / 2);
      const count = words.filter((other) => part.includes(other)).length;
      if (count > best.count) best = { start: at, count };
    }
  }
  const start = Math.max(0, best.start - EXCERPT_LENGTH / 4);
  const from = start === 0 ? 0 : text.indexOf(" ", start) + 1;
  const end = from + EXCERPT_LENGTH;
  return `${from > 0 ? "… " : ""}${text.slice(from, end)}${end < text.length ? " …" : ""}`;
}

/** The text with its wanted words in `mark` elements. */
function marked(text: string, wanted: string): (string | HTMLElement)[] {
  const words = wordsOf(wanted).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return [text];
  return text.split(new RegExp(`(${words.join("|")})`, "i")).map((part, at) => {
    if (at % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}
