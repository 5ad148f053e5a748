import { all, one } from "./elements.ts";

/** Shows only the entries that have every word of the field, and only groups that have entries. */
export function bindFilter(field: HTMLInputElement): void {
  const target = one(`#${field.dataset.filter}`);
  const state = one("[data-filter] + [role=status]", field.parentElement ?? document);
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const group of all("[data-group]", target)) {
      let inGroup = 0;
      for (const entry of all("[data-words]", group)) {
        entry.hidden = !words.every((word) => entry.dataset.words?.includes(word));
        if (!entry.hidden) inGroup++;
      }
      group.hidden = inGroup === 0;
      count += inGroup;
    }
    state.textContent = words.length === 0 ? "" : count === 1 ? "1 operation" : `${count || "No"} operations`;
  };
  field.addEventListener("input", apply);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && field.value !== "") {
      field.value = "";
      apply();
      event.stopPropagation();
    } else if (event.key === "Enter" && field.value.trim() !== "") {
      // The only entry, or the first one.
      target.querySelector<HTMLAnchorElement>("[data-group]:not([hidden]) [data-words]:not([hidden]) a")?.click();
    }
  });
  // The browser can restore the text of a page that was left.
  apply();
}
