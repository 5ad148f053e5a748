import { all, one } from "./elements.ts";

const CHOICE = "latchkey.language";

/** Tabs of languages, with the keys of https://www.w3.org/WAI/ARIA/apg/patterns/tabs/. The browser remembers the choice. */
export function bindTabs(element: HTMLElement): void {
  const tabs = all("[role=tab]", element);
  const choose = (chosen: HTMLElement) => {
    for (const tab of tabs) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      one(`#${tab.getAttribute("aria-controls")}`).hidden = !isChosen;
    }
  };
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => {
      choose(tab);
      remember(tab.textContent);
    });
    tab.addEventListener("keydown", (event) => {
      const steps: Record<string, number> = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const next = tabs.at(step % tabs.length);
      next?.focus();
      next?.click();
    });
  }
  const remembered = recall();
  const chosen = tabs.find(({ textContent }) => textContent === remembered) ?? tabs[0];
  if (chosen) choose(chosen);
}

function remember(language: string): void {
  try {
    localStorage.setItem(CHOICE, language);
  } catch {
    // Storage is off.
  }
}

function recall(): string | null {
  try {
    return localStorage.getItem(CHOICE);
  } catch {
    return null;
  }
}
