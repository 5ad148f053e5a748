import {
  CallError,
  Calls,
  type NewKey,
  type OwnDerivedKey,
  type OwnKey,
  type PortalSession,
  type Usage,
} from "./portal/calls.ts";
import { accentVariables } from "./portal/colors.ts";
import { derivedKeys, limitsOf } from "./portal/derived.ts";
import { createKey, type DialogParts, deleteKey, renameKey, replaceKey, showKey, titleOf } from "./portal/dialogs.ts";
import { bars, h } from "./portal/dom.ts";
import { style } from "./portal/style.ts";
import { Language } from "./portal/texts.ts";

export type { PortalSession } from "./portal/calls.ts";

/** The longest delay of a timer of the browser. */
const TIMER_MAX_MS = 2 ** 31 - 1;
const DAY = 86_400_000;

// A server that renders the page loads this module too, and has no elements.
const Base: typeof HTMLElement = globalThis.HTMLElement ?? class {};

/** A session that the service knows, and its calls. */
interface Opened {
  readonly calls: Calls;
  readonly session: PortalSession;
}

/**
 * The element `<latchkey-keys>`, in which an owner of keys manages them.
 *
 * Attributes: `session`, the token of a session of the portal; `service`, the address of the Latchkey service; `language`,
 * instead of that of the session. Events: `latchkey-session` with the session as `detail` when it is known, and
 * `latchkey-ended` when it has ended.
 */
export class LatchkeyKeysElement extends Base {
  static readonly observedAttributes = ["session", "service", "language"];
  /** The address of the service for elements without the attribute. */
  static service: string | undefined;

  readonly #root: ShadowRoot;
  #keys: OwnKey[] = [];
  #cursor: string | undefined;
  #language = new Language([]);
  #ending: ReturnType<typeof setTimeout> | undefined;
  /** Increases with each start, so that answers to a former session are ignored. */
  #run = 0;

  constructor() {
    super();
    this.#root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    this.#root.adoptedStyleSheets = [sheet];
  }

  connectedCallback(): void {
    void this.#start();
  }

  disconnectedCallback(): void {
    this.#run++;
    clearTimeout(this.#ending);
    this.#root.replaceChildren();
  }

  attributeChangedCallback(_: string, before: string | null, after: string | null): void {
    if (this.isConnected && before !== after) void this.#start();
  }

  async #start(): Promise<void> {
    const run = ++this.#run;
    clearTimeout(this.#ending);
    this.#setLanguage(null);
    const token = this.getAttribute("session");
    const service = this.getAttribute("service") ?? LatchkeyKeysElement.service;
    if (!service) {
      // For the developer of the page.
      const text = "latchkey-keys: set the attribute `service` to the address of the Latchkey service.";
      this.#show(h("p", { class: "error", role: "alert" }, text));
      return;
    }
    if (!token) {
      // Without the attribute, the page has yet to say which session it is.
      if (token === "") this.#end();
      return;
    }
    this.#show(h("p", { class: "note", role: "status" }, this.#language.texts.loading));
    const calls = new Calls(service.replace(/\/*$/, "/"), token);
    try {
      const session = await calls.getSession();
      if (run !== this.#run) return;
      this.#setLanguage(session.page.language);
      const variables = session.page.color === null ? {} : accentVariables(session.page.color);
      for (const [name, value] of Object.entries(variables)) this.#style.setProperty(name, value);
      const ending = () => run === this.#run && this.#end();
      this.#ending = setTimeout(ending, Math.min(session.expiresIn, TIMER_MAX_MS));
      this.dispatchEvent(new CustomEvent("latchkey-session", { detail: session, bubbles: true, composed: true }));
      await this.#load({ calls, session });
    } catch (error) {
      if (run === this.#run) this.#fail(error);
    }
  }

  /** The variables of the element itself, beneath those of the page. */
  get #style(): CSSStyleDeclaration {
    const [sheet] = this.#root.adoptedStyleSheets;
    return (sheet!.cssRules[0] as CSSStyleRule).style;
  }

  #setLanguage(ofSession: string | null): void {
    const ofPage = [...navigator.languages];
    this.#language = new Language([this.getAttribute("language"), ofSession, ...ofPage]);
    this.setAttribute("lang", this.#language.code);
    this.setAttribute("dir", this.#language.direction);
  }

  /** Reads the first page of keys again. */
  async #load(opened: Opened, focus?: string): Promise<void> {
    const run = this.#run;
    const canList = opened.session.actions.includes("list");
    const { keys, cursor } = canList ? await opened.calls.listKeys() : { keys: [], cursor: undefined };
    if (run !== this.#run) return;
    this.#keys = keys;
    this.#cursor = cursor;
    this.#render(opened);
    if (focus === undefined) return;
    const target = this.#root.querySelector<HTMLElement>(focus) ?? this.#root.querySelector("h2");
    target?.focus();
  }

  #render(opened: Opened): void {
    const { texts } = this.#language;
    const { actions } = opened.session;
    const create = h("button", { class: "primary", id: "create", click: () => this.#create(opened) }, texts.create);
    const head = h("div", { class: "head" }, h("h2", { tabindex: -1 }, texts.title));
    if (actions.includes("create")) head.append(create);
    const list = h("ul", {}, ...this.#keys.map((key) => this.#card(opened, key)));
    const more = h("button", { click: () => this.#more(opened, list, more) }, texts.more);
    const isEmpty = this.#keys.length === 0 && actions.includes("list");
    this.#show(
      head,
      isEmpty && h("p", { class: "note notice" }, texts.empty),
      !actions.includes("list") && actions.includes("usage") && this.#usage(() => opened.calls.getTotalUsage()),
      list,
      this.#cursor !== undefined && h("p", { class: "end" }, more),
    );
  }

  async #more(opened: Opened, list: HTMLUListElement, button: HTMLButtonElement): Promise<void> {
    const run = this.#run;
    try {
      const { keys, cursor } = await opened.calls.listKeys(this.#cursor);
      if (run !== this.#run) return;
      this.#cursor = cursor;
      this.#keys.push(...keys);
      const cards = keys.map((key) => this.#card(opened, key));
      list.append(...cards);
      cards[0]?.querySelector("h3")?.focus();
      if (cursor === undefined) button.remove();
    } catch (error) {
      if (run === this.#run) this.#fail(error);
    }
  }

  #card(opened: Opened, key: OwnKey): HTMLLIElement {
    const language = this.#language;
    const { texts } = language;
    const { actions } = opened.session;
    const isExpired = key.expires !== undefined && key.expires <= Date.now();
    const state = !key.enabled ? "disabled" : isExpired ? "expired" : key.leakedAt !== undefined ? "leaked" : "active";
    const ends = key.expires !== undefined && key.expires - Date.now() < 2 * DAY;
    const title = h("h3", { tabindex: -1, dir: "auto" }, titleOf(key, language));
    const facts = [
      key.name !== undefined && key.start !== "" && h("code", { dir: "ltr" }, `${key.start}…`),
      language.say("created", { date: language.date(key.createdAt) }),
      key.lastUsedAt === undefined ? texts.unused : language.say("used", { date: language.date(key.lastUsedAt) }),
      key.expires !== undefined && language.say("expires", { date: language.date(key.expires, ends) }),
      ...(key.roles ?? []),
      ...limitsOf(key, language),
    ];
    const act = (label: string, action: string, run: () => void, isDangerous = false) =>
      actions.includes(action) &&
      h(
        "button",
        { click: run, class: isDangerous && "danger", "aria-label": `${label}: ${title.textContent}` },
        label,
      );
    const buttons = h(
      "div",
      { class: "actions" },
      act(texts.rename, "rename", () => this.#rename(opened, key)),
      !isExpired && act(texts.replace, "reroll", () => this.#replace(opened, key)),
      act(texts.delete, "delete", () => this.#delete(opened, key), true),
    );
    const card = h(
      "li",
      { class: "key", id: key.keyId },
      h(
        "div",
        { class: "top" },
        title,
        h("span", { class: `badge ${state}` }, texts[state]),
        buttons.childElementCount > 0 && buttons,
      ),
      key.leakedAt !== undefined &&
        !isExpired &&
        h("p", { class: "error" }, texts.leakedText, actions.includes("reroll") && ` ${texts.leakedReplace}`),
      h(
        "div",
        { class: "facts" },
        ...this.#credits(key),
        this.#left(key),
        ...facts.map((fact) => fact && h("span", {}, fact)),
        actions.includes("usage") && this.#usage(() => opened.calls.getUsage(key.keyId)),
      ),
      key.derivedKeys !== undefined && this.#derived(opened, key),
    );
    return card;
  }

  #derived(opened: Opened, key: OwnKey): HTMLElement {
    const { calls, session } = opened;
    const run = this.#run;
    return derivedKeys(key, {
      language: this.#language,
      list: (cursor) => calls.listDerivedKeys(key.keyId, cursor),
      end: session.actions.includes("delete") ? (derived) => this.#endDerived(opened, key, derived) : undefined,
      fail: (error) => run === this.#run && this.#fail(error),
    });
  }

  /** Ends a derived key. The card of the key at its top stays in view. */
  async #endDerived(opened: Opened, key: OwnKey, derived: OwnDerivedKey): Promise<void> {
    const { calls } = opened;
    const isDeleted = await deleteKey(this.#parts(), derived, () => calls.deleteKey(derived.keyId));
    if (isDeleted) await this.#reload(opened, `#${key.keyId} h3`);
  }

  #credits({ credits }: OwnKey): Node[] {
    if (credits === undefined) return [];
    const { remaining, refill } = credits;
    return [
      h("strong", {}, this.#language.say("credits", { n: remaining })),
      ...(refill ? [h("span", {}, this.#language.say(refill.interval, { n: refill.amount }))] : []),
    ];
  }

  /** What one call may cost at most, unless the credits of the key say it already. */
  #left({ left, credits }: OwnKey): Node | undefined {
    if (left === undefined || (left.unit === undefined && left.remaining === credits?.remaining)) return undefined;
    const amount = this.#language.amount(left.remaining, left.unit);
    return h("strong", {}, this.#language.say("left", { amount }));
  }

  /** The verifications of the last 30 days, as soon as they are known. */
  #usage(read: () => Promise<Usage>): HTMLElement {
    const place = h("div", { class: "usage" });
    void this.#showUsage(read, place);
    return place;
  }

  async #showUsage(read: () => Promise<Usage>, place: HTMLElement): Promise<void> {
    try {
      const { total, valid, series } = await read();
      const failed = total - valid;
      place.replaceChildren(
        ...(total > 0 ? [bars(series.map((day) => day.total))] : []),
        h("span", {}, this.#language.say("usage", { n: total })),
        ...(failed > 0 ? [h("span", {}, this.#language.say("failed", { n: failed }))] : []),
      );
    } catch {
      // The card is complete without its usage.
      place.remove();
    }
  }

  /** `max`: what is the most keys, if the dialog makes another one. */
  #parts(max?: number): DialogParts {
    return { root: this.#root, language: this.#language, explain: (error) => this.#explain(error, max) };
  }

  async #create(opened: Opened): Promise<void> {
    const { calls, session } = opened;
    const created = await createKey(this.#parts(session.keys.max), session, (input) => calls.createKey(input));
    if (created) await this.#showNew(opened, created);
  }

  async #replace(opened: Opened, key: OwnKey): Promise<void> {
    const { calls } = opened;
    const created = await replaceKey(this.#parts(), key, (overlap) => calls.rerollKey(key.keyId, overlap));
    if (created) await this.#showNew(opened, created);
  }

  async #showNew(opened: Opened, { keyId, key }: NewKey): Promise<void> {
    await showKey(this.#parts(), key);
    await this.#reload(opened, `#${keyId} h3`);
  }

  async #rename(opened: Opened, key: OwnKey): Promise<void> {
    const { calls } = opened;
    const isChanged = await renameKey(this.#parts(), key, (name) => calls.renameKey(key.keyId, name));
    if (isChanged) await this.#reload(opened, `#${key.keyId} h3`);
  }

  async #delete(opened: Opened, key: OwnKey): Promise<void> {
    const { calls } = opened;
    const isDeleted = await deleteKey(this.#parts(), key, () => calls.deleteKey(key.keyId));
    if (isDeleted) await this.#reload(opened, "h2");
  }

  async #reload(opened: Opened, focus: string): Promise<void> {
    const run = this.#run;
    await this.#load(opened, focus).catch((error) => run === this.#run && this.#fail(error));
  }

  /** The text for an error. Ends the session if the service says so. */
  #explain(error: unknown, max?: number): string {
    const { texts } = this.#language;
    const status = error instanceof CallError ? error.status : -1;
    if (status === 401) this.#end();
    if (error instanceof CallError && status === 412) {
      const isFull = error.type === "application/maximum_reached" && max !== undefined;
      return isFull ? this.#language.say("full", { n: max }) : error.message;
    }
    if (status === 0) return texts.offline;
    return status === 429 ? texts.busy : texts.error;
  }

  #fail(error: unknown): void {
    const text = this.#explain(error);
    if (error instanceof CallError && error.status === 401) return;
    const retry = h("button", { click: () => this.#start() }, this.#language.texts.retry);
    this.#show(h("div", { class: "notice", role: "alert" }, h("p", {}, text), retry));
  }

  #end(): void {
    this.#run++;
    clearTimeout(this.#ending);
    this.#show(h("div", { class: "notice", role: "alert" }, h("p", {}, this.#language.texts.ended)));
    this.dispatchEvent(new CustomEvent("latchkey-ended", { bubbles: true, composed: true }));
  }

  #show(...content: readonly (Node | false | undefined)[]): void {
    this.#root.replaceChildren(...content.filter((node) => node instanceof Node));
  }
}

/** Defines the element `<latchkey-keys>` in this page; `service` is the address for elements without the attribute. */
export function defineLatchkeyKeys(service?: string): void {
  if (service !== undefined) LatchkeyKeysElement.service = service;
  if (globalThis.customElements === undefined || customElements.get("latchkey-keys")) return;
  customElements.define("latchkey-keys", LatchkeyKeysElement);
}
