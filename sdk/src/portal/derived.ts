import type { OwnDerivedKey, OwnKey } from "./calls.ts";
import { h } from "./dom.ts";
import type { Language } from "./texts.ts";

/** What the list of derived keys needs of the element. */
export interface DerivedParts {
  readonly language: Language;
  list(cursor?: string): Promise<{ keys: OwnDerivedKey[]; cursor: string | undefined }>;
  /** Asks, and ends the derived key; undefined: the session may not. */
  readonly end: ((key: OwnDerivedKey) => void) | undefined;
  fail(error: unknown): void;
}

/** The keys that were derived of a key, which are read when the list is opened. */
export function derivedKeys({ derivedKeys: count = 0 }: OwnKey, parts: DerivedParts): HTMLElement {
  const list = h("ul", {});
  let isRead = false;
  const open = () => {
    if (!details.open || isRead) return;
    isRead = true;
    void showMore(list, parts);
  };
  const details = h(
    "details",
    { class: "derived", toggle: open },
    h("summary", {}, parts.language.say("derived", { n: count })),
    list,
  );
  return details;
}

async function showMore(list: HTMLUListElement, parts: DerivedParts, cursor?: string): Promise<void> {
  const { language } = parts;
  try {
    const page = await parts.list(cursor);
    const rows = page.keys.map((key) => row(key, parts));
    list.append(...rows);
    if (cursor !== undefined) rows[0]?.querySelector("code")?.focus();
    if (page.cursor === undefined) return;
    const more = () => {
      place.remove();
      void showMore(list, parts, page.cursor);
    };
    const place = h("li", { class: "end" }, h("button", { click: more }, language.texts.more));
    list.append(place);
  } catch (error) {
    parts.fail(error);
  }
}

function row(key: OwnDerivedKey, { language, end }: DerivedParts): HTMLLIElement {
  const { texts } = language;
  const start = `${key.start}…`;
  const facts = [
    language.say("created", { date: language.date(key.createdAt, true) }),
    language.say("expires", { date: language.date(key.expires, true) }),
    key.credits && language.say("credits", { n: key.credits.remaining }),
    ...limitsOf(key, language),
  ];
  const button =
    end &&
    h("button", { class: "danger", click: () => end(key), "aria-label": `${texts.delete}: ${start}` }, texts.delete);
  return h(
    "li",
    { class: "facts" },
    h("code", { dir: "ltr", tabindex: -1 }, start),
    ...facts.map((fact) => fact && h("span", {}, fact)),
    button && h("div", { class: "actions" }, button),
  );
}

/** The limits of a key, as text. */
export function limitsOf({ ratelimits = [] }: Pick<OwnKey, "ratelimits">, language: Language): string[] {
  const number = new Intl.NumberFormat(language.code);
  return ratelimits.map(
    ({ name, limit, duration }) => `${name}: ${number.format(limit)} / ${language.duration(duration, "short")}`,
  );
}
