import { type ProblemCode, problems } from "../../rpc/problems.ts";

/** The prefix of every path, for a service behind a proxy that removes a part of the path. */
export interface Links {
  publicUrl: string;
}

/** The page that explains one problem. */
export function errorPage(code: ProblemCode, links: Links): string {
  const { status, title, type, meaning, causes, remedy } = problems[code];
  return frame(
    `${nameOf(code)} (${status})`,
    `
    <p class="status">${status} ${text(title)}</p>
    <h1>${nameOf(code)}</h1>
    <p class="type"><code>/errors/${text(type)}</code></p>
    <p class="lead">${inline(meaning)}</p>
    <h2>Causes</h2>
    ${list(causes)}
    <h2>How to fix it</h2>
    ${list(remedy)}`,
    links,
  );
}

/** The page that lists all problems. */
export function errorsPage(links: Links): string {
  const entries = (Object.keys(problems) as ProblemCode[]).map((code) => {
    const { status, type, meaning } = problems[code];
    return `
      <li>
        <span class="status">${status}</span>
        <div>
          <a href="${links.publicUrl}/errors/${type}">${nameOf(code)}</a>
          <p>${inline(meaning)}</p>
        </div>
      </li>`;
  });
  return frame("Errors", `<h1>Errors</h1><ul class="all">${entries.join("")}</ul>`, links);
}

/** The page for an unknown problem. */
export function missingPage(links: Links): string {
  return frame(
    "No such error",
    `
    <p class="status">404 Not Found</p>
    <h1>There is no such error</h1>
    <p class="lead">The address may be incomplete, or belong to a newer version of the service.</p>
    <p><a href="${links.publicUrl}/errors">All errors</a></p>`,
    links,
  );
}

/** The name of a problem in a headline. */
function nameOf(code: ProblemCode): string {
  const words = code.replaceAll("_", " ").replace(/\bapi\b/, "API");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function frame(title: string, content: string, { publicUrl }: Links): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${text(title)} · Latchkey</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="${publicUrl}/errors/style.css">
  </head>
  <body>
    <header><a href="${publicUrl}/errors">Latchkey errors</a><nav><a href="${publicUrl}/docs">Documents</a> <a href="${publicUrl}/reference">API reference</a></nav></header>
    <main>${content}
    </main>
    <footer>For JSON, send <code>Accept: application/json</code>.</footer>
  </body>
</html>
`;
}

function list(sentences: readonly string[]): string {
  return `<ul>${sentences.map((sentence) => `<li>${inline(sentence)}</li>`).join("")}</ul>`;
}

/** Converts Markdown to HTML. The only Markdown is code in backticks. */
function inline(sentence: string): string {
  return text(sentence).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

function text(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
