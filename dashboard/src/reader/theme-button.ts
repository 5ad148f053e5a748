const CHOICE = "latchkey.theme";
const themes = ["system", "light", "dark"] as const;
const names = { system: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

/** A button that goes from theme to theme. The dashboard has the same choice, in `ui/theme.ts`. */
export function bindTheme(button: HTMLElement): void {
  const { dataset } = document.documentElement;
  let theme = themes.find((one) => one === dataset.theme) ?? "system";
  const show = () => {
    button.ariaLabel = names[theme];
    button.title = names[theme];
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
    if (theme === "system") delete dataset.theme;
    else dataset.theme = theme;
    try {
      localStorage.setItem(CHOICE, theme);
    } catch {
      // Storage is off.
    }
    show();
  });
  show();
}
