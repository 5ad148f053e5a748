import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { getConnInfo } from "@hono/node-server/conninfo";
import type { Latchkey } from "@latchkey/sdk";
import { ratelimit } from "@latchkey/sdk/hono";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { csrf } from "hono/csrf";
import { HTTPException } from "hono/http-exception";
import { secureHeaders } from "hono/secure-headers";
import type { Customer, Customers } from "./customers.ts";
import { draw } from "./drawing.ts";
import { pay } from "./payments.ts";
import { packs, pro } from "./plans.ts";
import type { Sessions } from "./session.ts";
import { accountPage, homePage, messagePage, newKeyPage } from "./views.ts";

const BODY_BYTES_MAX = 4_096;
const NAME_LENGTH_MAX = 60;
const HOUR_MS = 3_600_000;
/** How long an old key stays valid after a rotation, by what the customer chooses. */
const overlaps: Readonly<Record<string, number>> = { now: 0, day: 24 * HOUR_MS };

const style = readFileSync(new URL("../public/style.css", import.meta.url), "utf8");
const art = draw("large", "#6d5dfc", "Tinct");

/** The pages: signing up, and the account of a customer. */
export function website(parts: { latchkey: Latchkey; customers: Customers; sessions: Sessions }) {
  const { latchkey, customers, sessions } = parts;
  const app = new Hono();
  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        formAction: ["'self'"],
        baseUri: ["'none'"],
        frameAncestors: ["'none'"],
      },
      // Pages do not leak, and a form that is sent still has its origin.
      referrerPolicy: "same-origin",
    }),
  );
  // Other sites cannot send the forms.
  app.use(csrf());
  app.use(bodyLimit({ maxSize: BODY_BYTES_MAX, onError: (c) => c.html(tooLong, 413) }));

  app.get("/style.css", (c) => c.body(style, 200, { "Content-Type": "text/css", "Cache-Control": "max-age=300" }));
  app.get("/art.svg", (c) => c.body(art, 200, { "Content-Type": "image/svg+xml", "Cache-Control": "max-age=300" }));

  app.get("/", async (c) => {
    if (await sessions.customerOf(c)) return c.redirect("/account", 303);
    return c.html(homePage({ origin: new URL(c.req.url).origin }));
  });

  // Each sign-up is worth free credits.
  const signups = ratelimit({
    latchkey,
    namespace: "signups",
    limit: 10,
    duration: HOUR_MS,
    identifier: "address",
    // Behind a proxy, read the header that the proxy sets.
    address: (c) => getConnInfo(c).remote.address,
    onReject: ({ status, headers, code }) => ({
      status,
      headers: { ...headers, "Content-Type": "text/html; charset=UTF-8" },
      body: String(code === "RATE_LIMITED" ? tooManySignups : unavailable),
    }),
  });

  app.post("/signup", signups, async (c) => {
    const name = (await field(c, "name")).trim();
    if (name === "" || name.length > NAME_LENGTH_MAX) {
      const detail = `A name has 1 to ${NAME_LENGTH_MAX} characters.`;
      return c.html(homePage({ origin: new URL(c.req.url).origin, error: detail }), 400);
    }
    const { id, key } = await customers.signUp(name);
    await sessions.begin(c, id);
    return showKey(c, key.reveal(), { isFirst: true });
  });

  app.post("/signin", async (c) => {
    const key = (await field(c, "key")).trim();
    const id = /^[\x21-\x7e]{1,512}$/.test(key) ? await customers.ownerOf(key) : undefined;
    if (id === undefined) {
      const detail = "This key does not work. It may have been rotated.";
      return c.html(homePage({ origin: new URL(c.req.url).origin, keyError: detail }), 401);
    }
    await sessions.begin(c, id);
    return c.redirect("/account", 303);
  });

  app.post("/signout", (c) => {
    sessions.end(c);
    return c.redirect("/", 303);
  });

  const account = new Hono<{ Variables: { customer: Customer } }>();
  account.use(async (c, next) => {
    c.header("Cache-Control", "no-store");
    const id = await sessions.customerOf(c);
    const customer = id === undefined ? undefined : await customers.find(id);
    if (customer) {
      c.set("customer", customer);
      return next();
    }
    sessions.end(c);
    if (c.req.method === "GET") return c.redirect("/", 303);
    return c.html(messagePage("Signed out", "Sign in with your API key, and try again."), 401);
  });

  account.get("/", async (c) => {
    const { customer } = c.var;
    const page = accountPage({
      customer,
      usage: await customers.usage(customer),
      origin: new URL(c.req.url).origin,
      // One payment for each time that the page is shown: sending its form twice pays once.
      paymentId: randomUUID(),
    });
    return c.html(page);
  });

  account.post("/payments", async (c) => {
    const id = await field(c, "payment");
    const credits = Number(await field(c, "credits"));
    const pack = packs.find((one) => one.credits === credits);
    if (!pack || !/^[\da-f-]{36}$/.test(id)) return c.html(invalid, 400);
    await pay({ id, dollars: pack.price });
    await customers.addCredits(c.var.customer, id, pack);
    return c.redirect("/account", 303);
  });

  account.post("/upgrade", async (c) => {
    const { customer } = c.var;
    await pay({ id: `${customer.id}.${pro.name}`, dollars: pro.price });
    await customers.upgrade(customer);
    return c.redirect("/account", 303);
  });

  account.post("/rotate", async (c) => {
    const overlap = await field(c, "overlap");
    if (!Object.hasOwn(overlaps, overlap)) return c.html(invalid, 400);
    const issued = await customers.rotate(c.var.customer, await field(c, "key"), overlaps[overlap]!);
    if (issued) return showKey(c, issued.key.reveal(), { isFirst: false });
    const detail = "This is not your newest key, or you have too many keys that still work. End the older ones first.";
    return c.html(messagePage("The key was not rotated", detail), 409);
  });

  account.post("/end", async (c) => {
    if (await customers.endKey(c.var.customer, await field(c, "key"))) return c.redirect("/account", 303);
    return c.html(messagePage("No such key", "Your account has no older key like this."), 404);
  });

  app.route("/account", account);
  app.all("*", (c) => c.html(messagePage("Not found", "There is no such page."), 404));
  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse();
    console.error(error);
    return c.html(unavailable, 503);
  });
  return app;
}

const tooLong = messagePage("Too long", "The form has too much text.");
const invalid = messagePage("Not valid", "Go back, and choose one of the options of the form.");
const unavailable = messagePage("Not available", "This does not work right now. Try again in a minute.");
const tooManySignups = messagePage("Too many sign-ups", "Try again in an hour.");

function showKey(c: Context, key: string, { isFirst }: { isFirst: boolean }) {
  c.header("Cache-Control", "no-store");
  return c.html(newKeyPage({ key, isFirst, origin: new URL(c.req.url).origin }));
}

/** A text of the form; empty if it is not there. */
async function field(c: Context, name: string): Promise<string> {
  const { [name]: value } = await c.req.parseBody();
  return typeof value === "string" ? value : "";
}
