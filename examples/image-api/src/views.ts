/** The pages. `html` escapes every value that is not made by `html` itself. */
import { html } from "hono/html";
import type { Customer, DayOfUsage } from "./customers.ts";
import { costs, free, type Plan, packs, pro } from "./plans.ts";

type Html = ReturnType<typeof html>;

const number = new Intl.NumberFormat("en");
const shortDay = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });
const longDay = new Intl.DateTimeFormat("en", { day: "numeric", month: "long", timeZone: "UTC" });
const dayAndTime = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });

export function homePage({ origin, error, keyError }: { origin: string; error?: string; keyError?: string }): Html {
  return layout(
    "Palettes and images by API",
    html`<section class="hero">
        <div>
          <h1>Five colors that fit, from one that you like.</h1>
          <p class="lead">Tinct is an API for palettes and for images in them. The first ${free.credits} credits of each
            month are free, and no card is needed.</p>
          <form class="signup" method="post" action="/signup">
            <label for="name">Your name, or that of your project</label>
            <div class="row">
              <input id="name" name="name" required maxlength="60" autocomplete="organization" placeholder="Acme"
                ${error === undefined ? "" : html`aria-invalid="true" aria-describedby="name-error"`} />
              <button class="primary">Get an API key</button>
            </div>
            ${error === undefined ? "" : html`<p class="error" id="name-error">${error}</p>`}
          </form>
        </div>
        <img class="art" src="/art.svg" width="1024" height="1024" alt="An image that the API has drawn" />
      </section>
      <section aria-labelledby="plans">
        <h2 id="plans">Plans</h2>
        <div class="cards">${planCard(free)}${planCard(pro)}</div>
      </section>
      <section aria-labelledby="try">
        <h2 id="try">Try it</h2>
        ${example(origin, "YOUR_KEY")}
      </section>
      <section aria-labelledby="signin">
        <h2 id="signin">You have a key already</h2>
        <form class="signin" method="post" action="/signin">
          <label for="key">API key</label>
          <div class="row">
            <input id="key" name="key" type="password" required maxlength="512" autocomplete="current-password"
              ${keyError === undefined ? "" : html`aria-invalid="true" aria-describedby="key-error"`} />
            <button>Open your account</button>
          </div>
          ${keyError === undefined ? "" : html`<p class="error" id="key-error">${keyError}</p>`}
        </form>
      </section>`,
  );
}

export function newKeyPage({ key, isFirst, origin }: { key: string; isFirst: boolean; origin: string }): Html {
  return layout(
    "Your API key",
    html`<section class="narrow">
      <h1>${isFirst ? "Here is your API key" : "Here is your new API key"}</h1>
      <p class="lead">Copy it to a safe place. It is shown this once, and stored nowhere.</p>
      <p class="key"><code>${key}</code></p>
      ${isFirst ? html`<h2>Your first call</h2>${example(origin, key)}` : ""}
      <p><a class="button primary" href="/account">I have saved it</a></p>
    </section>`,
  );
}

export function messagePage(title: string, detail: string): Html {
  return layout(
    title,
    html`<section class="narrow">
      <h1>${title}</h1>
      <p class="lead">${detail}</p>
      <p><a class="button" href="/">Back</a></p>
    </section>`,
  );
}

interface Account {
  readonly customer: Customer;
  readonly usage: readonly DayOfUsage[];
  readonly origin: string;
  readonly paymentId: string;
}

export function accountPage({ customer, usage, origin, paymentId }: Account): Html {
  const { plan, credits, keys } = customer;
  const used = usage.reduce((sum, day) => sum + day.credits, 0);
  const accepted = usage.reduce((sum, day) => sum + day.accepted, 0);
  const rejected = usage.reduce((sum, day) => sum + day.rejected, 0);
  const share = Math.min(100, (credits / plan.credits) * 100);
  const [newest, ...older] = keys;
  return layout(
    "Your account",
    html`<div class="title">
        <h1>${customer.name}</h1>
        <span class="badge ${plan.name}">${plan.title}</span>
      </div>
      <div class="cards">
        <section class="card" aria-labelledby="credits">
          <h2 id="credits">Credits</h2>
          <p class="figure"><strong id="balance">${number.format(credits)}</strong> left</p>
          <svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
            <rect class="track" width="100" height="4" />
            <rect class="fill" width="${share.toFixed(1)}" height="4" />
          </svg>
          <p class="hint">On ${longDay.format(nextMonth())} the balance is set to ${number.format(plan.credits)} again.
            Use what you buy before.</p>
          <form class="row" method="post" action="/account/payments">
            <input type="hidden" name="payment" value="${paymentId}" />
            ${packs.map(
              (pack) =>
                html`<button name="credits" value="${pack.credits}">Buy ${number.format(pack.credits)} for $${pack.price}</button>`,
            )}
          </form>
        </section>
        <section class="card" aria-labelledby="plan">
          <h2 id="plan">Plan</h2>
          <p class="figure"><strong>$${plan.price}</strong> a month</p>
          ${planFacts(plan)}
          ${
            plan === pro
              ? ""
              : html`<form method="post" action="/account/upgrade">
                <button class="primary">Upgrade to ${pro.title} for $${pro.price}</button>
                <p class="hint">Images, ${number.format(pro.credits)} credits a month and ${pro.requestsPerMinute} requests a minute.</p>
              </form>`
          }
        </section>
      </div>
      <section class="card" aria-labelledby="usage">
        <h2 id="usage">Usage of the last ${usage.length} days</h2>
        ${chart(usage)}
        <p class="hint">${number.format(used)} credits in ${number.format(accepted)} requests.
          ${rejected === 0 ? "None was rejected." : `${number.format(rejected)} rejected, at no cost.`} Days are in UTC.</p>
      </section>
      <section class="card" aria-labelledby="keys">
        <h2 id="keys">API key</h2>
        <ul class="keys">
          <li>
            <span><code>${newest!.start}…</code> <span class="hint">${expiry(newest!.expires)}</span></span>
          </li>
          ${older.map(
            ({ keyId, start, expires }) => html`<li>
              <span><code>${start}…</code> <span class="hint">replaced, ${expiry(expires)}</span></span>
              <form method="post" action="/account/end">
                <input type="hidden" name="key" value="${keyId}" />
                <button class="danger">End it now</button>
              </form>
            </li>`,
          )}
        </ul>
        <form class="rotate" method="post" action="/account/rotate">
          <input type="hidden" name="key" value="${newest!.keyId}" />
          <fieldset>
            <legend>Rotate it: the key that you have now</legend>
            <label><input type="radio" name="overlap" value="day" checked /> works for another day, until you have replaced it</label>
            <label><input type="radio" name="overlap" value="now" /> stops at once, because it has leaked</label>
          </fieldset>
          <button>Rotate the key</button>
        </form>
      </section>
      <section class="card" aria-labelledby="calls">
        <h2 id="calls">Calls</h2>
        ${example(origin, "YOUR_KEY")}
      </section>`,
    html`<form method="post" action="/signout"><button class="plain">Sign out</button></form>`,
  );
}

function planCard(plan: Plan): Html {
  return html`<article class="card">
    <h3>${plan.title}</h3>
    <p class="figure"><strong>$${plan.price}</strong> a month</p>
    ${planFacts(plan)}
  </article>`;
}

function planFacts(plan: Plan): Html {
  return html`<ul class="facts">
    <li>${number.format(plan.credits)} credits a month</li>
    <li>${plan.requestsPerMinute} requests a minute</li>
    ${plan.features.map((feature) => html`<li>${feature}</li>`)}
  </ul>`;
}

function example(origin: string, key: string): Html {
  const { small, medium, large } = costs.image;
  return html`<p class="hint">A palette costs ${costs.palette} credit.</p>
    <pre tabindex="0"><code>curl '${origin}/v1/palettes?color=%236d5dfc' \\
  -H 'Authorization: Bearer ${key}'</code></pre>
    <p class="hint">An image costs ${small}, ${medium} or ${large} credits: small, medium or large. It needs the plan ${pro.title}.</p>
    <pre tabindex="0"><code>curl ${origin}/v1/images \\
  -H 'Authorization: Bearer ${key}' \\
  --json '{"size": "medium", "color": "#6d5dfc", "seed": "hello"}'</code></pre>`;
}

/** The credits of each day as bars. */
function chart(usage: readonly DayOfUsage[]): Html {
  const highest = Math.max(1, ...usage.map(({ credits }) => credits));
  return html`<ol class="chart">
    ${usage.map(({ time, credits }) => {
      const height = credits === 0 ? 0 : Math.max(2, (credits / highest) * 100);
      return html`<li>
        <span class="value">${credits === 0 ? "" : number.format(credits)}</span>
        <svg viewBox="0 0 10 100" preserveAspectRatio="none" aria-hidden="true">
          <rect class="track" y="98" width="10" height="2" />
          <rect class="fill" y="${(100 - height).toFixed(1)}" width="10" height="${height.toFixed(1)}" />
        </svg>
        <time datetime="${new Date(time).toISOString().slice(0, 10)}">${shortDay.format(time)}</time>
      </li>`;
    })}
  </ol>`;
}

function expiry(expires: number | undefined): string {
  return expires === undefined ? "does not expire" : `works until ${dayAndTime.format(expires)} UTC`;
}

/** The day of the next refill. */
function nextMonth(): number {
  const now = new Date();
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
}

function layout(title: string, content: Html, actions: Html | string = ""): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Tinct</title>
        <link rel="icon" href="/art.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/style.css" />
      </head>
      <body>
        <header><a class="brand" href="/">Tinct</a>${actions}</header>
        <main>${content}</main>
        <footer>An example of Latchkey. Payments are simulated.</footer>
      </body>
    </html>`;
}
