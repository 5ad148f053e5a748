/** The page of the portal. What it shows comes from the session, whose token is in the fragment of its address. */
export const portalPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="robots" content="noindex">
    <title>API keys</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="portal/style.css">
    <script type="module" src="portal/page.js"></script>
  </head>
  <body>
    <header>
      <img id="logo" alt="" referrerpolicy="no-referrer" hidden>
      <h1 id="name"></h1>
      <a id="back" hidden></a>
    </header>
    <main>
      <noscript>This page needs JavaScript.</noscript>
      <latchkey-keys></latchkey-keys>
    </main>
  </body>
</html>
`;

/**
 * Starts the element with the token, which leaves the address at once, and shows the name and the logo of the session.
 * The token stays in the tab, so that the page can be loaded again.
 */
export const portalScript = `import { Language } from "./latchkey-keys.js";

const STORED = "latchkey-portal";
const element = document.querySelector("latchkey-keys");
const [logo, name, back] = ["logo", "name", "back"].map((id) => document.getElementById(id));
let policy;

function start() {
  const given = location.hash.slice(1);
  if (given !== "") {
    sessionStorage.setItem(STORED, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  element.setAttribute("session", sessionStorage.getItem(STORED) ?? "");
}

element.addEventListener("latchkey-session", ({ detail: { page } }) => {
  const language = new Language([page.language, ...navigator.languages]);
  document.documentElement.lang = language.code;
  document.documentElement.dir = language.direction;
  name.textContent = page.name ?? language.texts.title;
  // The element has the same title.
  name.classList.toggle("unseen", page.name === null);
  document.title = [page.name, language.texts.title].filter((part) => part !== null).join(" · ");
  back.hidden = page.returnUrl === null;
  back.href = page.returnUrl ?? "";
  back.textContent = page.name === null ? language.texts.backPlain : language.say("back", { name: page.name });
  show(page.logoUrl);
});
element.addEventListener("latchkey-ended", () => sessionStorage.removeItem(STORED));
addEventListener("hashchange", start);
start();

/** Shows the logo. From then on, the page can load no other image. */
function show(url) {
  logo.hidden = url === null;
  if (policy === undefined) {
    policy = document.createElement("meta");
    policy.httpEquiv = "Content-Security-Policy";
    policy.content = "img-src data:";
    if (url !== null) {
      const { origin, pathname } = new URL(url);
      policy.content += " " + origin + pathname.replaceAll(";", "%3B").replaceAll(",", "%2C");
    }
    document.head.append(policy);
  }
  if (url !== null) logo.src = url;
}
`;

export const portalStyle = `:root{color-scheme:light dark;background:light-dark(#f5f6f8,#131519);color:light-dark(#1a1d23,#e8eaee)}
body{margin:0 auto;max-width:46rem;padding:1.25rem 1rem 3rem;font:400 1rem/1.5 system-ui,sans-serif}
header{display:flex;flex-wrap:wrap;gap:.5rem .75rem;align-items:center;min-height:2.5rem;margin-bottom:1.25rem}
#logo{height:2rem;max-width:12rem;object-fit:contain}
h1{font-size:1.125rem;margin:0;flex:1 1 auto;overflow-wrap:anywhere}
a{color:inherit}
[hidden]{display:none!important}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
:focus-visible{outline:2px solid currentColor;outline-offset:2px}
`;
