// Shows the chosen theme before the page is painted. See src/ui/theme.ts, which stores it.
try {
  const theme = localStorage.getItem("latchkey.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is off.
}
