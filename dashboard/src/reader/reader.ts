import "./reader.css";
import { all, one } from "./elements.ts";
import { EXAMPLE_URL } from "./example-url.ts";
import { bindFilter } from "./filter.ts";
import { loadPart } from "./part.ts";
import { bindTabs } from "./tabs.ts";
import { bindTheme } from "./theme-button.ts";

/** The scripts of the pages below `/docs` and `/reference`. Without them the pages can be read all the same. */

const { root = "", search: searchTexts = "" } = document.body.dataset;
const serviceUrl = new URL(root || "./", location.href).href.replace(/\/$/, "");

for (const element of all("[hidden]")) element.hidden = false;
bindTheme(one("#reader-theme-button"));
for (const field of all<HTMLInputElement>("[data-filter]")) bindFilter(field);
for (const tabs of all("#reader-snippets")) {
  bindTabs(tabs);
  writeAddress(tabs);
}
bindPlaces();
bindSearch();
bindCopying();
for (const place of all("#reader-call")) bindCall(place);
document.querySelector("#reader-places [aria-current]")?.scrollIntoView({ block: "nearest" });

/** On narrow windows the navigation opens below the top. */
function bindPlaces(): void {
  const button = one("#reader-places-button");
  const places = one("#reader-places");
  const show = (isOpen: boolean) => {
    places.classList.toggle("open", isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.addEventListener("click", () => show(!places.classList.contains("open")));
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !places.classList.contains("open")) return;
    show(false);
    button.focus();
  });
}

/** The search is loaded when it is opened. */
function bindSearch(): void {
  const dialog = one<HTMLDialogElement>("#reader-search");
  let isBound = false;
  const open = async () => {
    if (!dialog.open) dialog.showModal();
    if (isBound) return;
    isBound = true;
    const search = await loadPart(() => import("./search.ts"), one("#reader-search-state", dialog));
    search?.bindSearchField(dialog, { root, texts: new URL(root + searchTexts, location.href) });
  };
  one("#reader-search-button").addEventListener("click", open);
  dialog.addEventListener("click", ({ target }) => {
    // What is around the dialog belongs to it.
    if (target === dialog) dialog.close();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = (event.target as HTMLElement).closest("input, textarea, select, [contenteditable]");
    const isShortcut = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
    if (!isShortcut && (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void open();
  });
}

function bindCopying(): void {
  document.addEventListener("click", async ({ target }) => {
    const button = (target as HTMLElement).closest<HTMLElement>("[data-copy]");
    if (!button?.parentElement) return;
    const code = one("code", button.parentElement).textContent;
    try {
      await navigator.clipboard.writeText(code);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2_000);
  });
}

/** The form of an operation is loaded when it is opened. */
function bindCall(place: HTMLElement): void {
  const button = one<HTMLButtonElement>("#reader-call-button");
  button.addEventListener("click", async () => {
    button.disabled = true;
    const form = await loadPart(() => import("./call-form.tsx"), place);
    form?.showCallForm(place, JSON.parse(one("#reader-operation").textContent), serviceUrl);
  });
}

/** Writes the address of this service into the examples. */
function writeAddress(element: HTMLElement): void {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    if (node.data.includes(EXAMPLE_URL)) node.data = node.data.replaceAll(EXAMPLE_URL, serviceUrl);
  }
}
