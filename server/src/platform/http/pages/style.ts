/** The style sheet of the error pages. It loads no other files and follows the light or dark mode of the system. */
export const stylesheet = `
:root {
  color-scheme: light dark;
  --paper: #fbfaf8;
  --ink: #1d1c1a;
  --quiet: #6b6862;
  --line: #e4e1db;
  --field: #f1efea;
  --accent: #9a4a12;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #171614;
    --ink: #eceae5;
    --quiet: #a09c94;
    --line: #34322e;
    --field: #23211e;
    --accent: #f0a063;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0;
  background: var(--paper);
  color: var(--ink);
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main, header, footer { width: min(42rem, 100% - 2.5rem); margin-inline: auto; }
header {
  display: flex;
  justify-content: space-between;
  gap: 1rem;
  padding-block: 1.25rem;
  border-bottom: 1px solid var(--line);
  font-size: 0.9375rem;
}
header a { text-decoration: none; }
header nav a { color: var(--quiet); }
header > a { color: var(--ink); font-weight: 600; }
header nav { display: flex; gap: 1rem; }
main { padding-block: clamp(2rem, 8vw, 4.5rem) 3rem; }
.status { margin: 0; color: var(--accent); font: 600 0.9375rem/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
h1 { margin: 0.375rem 0 1rem; font-size: clamp(1.75rem, 6vw, 2.5rem); line-height: 1.15; letter-spacing: -0.02em; }
.type { margin: 0 0 2rem; overflow-wrap: anywhere; }
.lead { margin: 0; font-size: 1.1875rem; }
h2 { margin: 2.5rem 0 0.5rem; font-size: 1.0625rem; }
ul { margin: 0; padding-left: 1.25rem; }
li { margin-block: 0.375rem; padding-left: 0.25rem; overflow-wrap: anywhere; }
li::marker { color: var(--accent); }
code {
  padding: 0.125em 0.375em;
  border-radius: 0.25rem;
  background: var(--field);
  font: 0.875em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  overflow-wrap: anywhere;
}
a { color: var(--accent); text-underline-offset: 0.2em; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
.all { list-style: none; padding: 0; }
.all li { display: grid; grid-template-columns: 3rem 1fr; padding: 0.5rem 0; border-bottom: 1px solid var(--line); }
.all .status { line-height: inherit; }
.all p { margin: 0; color: var(--quiet); font-size: 0.9375rem; }
footer { padding-block: 1.25rem 2.5rem; border-top: 1px solid var(--line); color: var(--quiet); font-size: 0.9375rem; }
`;
