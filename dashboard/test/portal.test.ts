/** The portal, in which owners of keys manage them: its page, and the element in pages of other origins. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { rolldown } from "rolldown";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, fitsWindow, isAccessible, settled } from "./dashboard.ts";
import { eventuallyEqual, eventuallyMatch, eventuallyPasses, eventuallyWithout, pressIn } from "./waiting.ts";

const images = process.env.LATCHKEY_TEST_IMAGES;
const ALL = ["list", "create", "reroll", "rename", "delete", "usage"];
const HOSTILE = "<img src=x onerror=globalThis.executed=1>";
const LOGO = "https://logo.example/a;b,c.svg";
const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><circle cx="32" cy="32" r="30" fill="#0a7"/></svg>';
const DAY = 86_400_000;

/** The title of the page, and a button of each key. */
const languages = {
  en: ["API keys", "Replace"],
  de: ["API-Schlüssel", "Ersetzen"],
  fr: ["Clés d’API", "Remplacer"],
  es: ["Claves de API", "Reemplazar"],
  pt: ["Chaves de API", "Substituir"],
  ja: ["APIキー", "再発行"],
  ar: ["مفاتيح API", "استبدال"],
} as const;

describeDashboard(
  "the portal",
  (dashboard) => {
    let apiId: string;
    before(async () => {
      ({ apiId } = await dashboard.ok("apis.createApi", { name: "documents" }));
      await dashboard.ok("apis.updateApi", { apiId, prefix: "docs" });
    });

    /** A session; returns the path of its page. */
    const open = async (more: object = {}): Promise<{ token: string; url: string }> =>
      dashboard.ok("portal.createSession", { apiId, externalId: "ada", actions: ALL, ...more });
    const visit = async (more: object = {}, options: object = {}): Promise<Page> =>
      dashboard.visit((await open(more)).url, { as: null, width: 1024, ...options });

    it("lets a person create, copy, rename, replace and delete keys", async () => {
      const page = await visit({
        externalId: "bob",
        keys: { max: 3, prefixes: ["live", "test"] },
        page: { name: "Acme" },
      });
      await page.getByText("You have no API keys yet.").waitFor();
      await eventuallyEqual(() => page.title(), "Acme · API keys");
      assert.equal(new URL(page.url()).hash, "", "the token stays in the address");

      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("laptop");
      await page.getByLabel("Prefix").selectOption("test");
      await page.getByLabel("Expires").selectOption({ label: "After 30 days" });
      await page.getByLabel("Expires").press("Tab");
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      const key = await page.getByRole("textbox", { name: "Your new API key" }).inputValue();
      assert.match(key, /^test_/);
      await pressIn(page.getByRole("dialog"), "Escape");
      await page.getByRole("button", { name: "Copy" }).click();
      await page.getByText("Copied").waitFor();
      await eventuallyEqual(() => page.evaluate(() => navigator.clipboard.readText()), key);
      await page.getByRole("button", { name: "I have saved it" }).click();
      await page.getByRole("heading", { name: "laptop" }).waitFor();
      await eventuallyWithout(page, key);
      assert.equal((await dashboard.server.ok("keys.verifyKey", { key })).code, "VALID");

      await page.getByRole("button", { name: "Rename: laptop" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("phone");
      await page.getByRole("textbox", { name: "Name" }).press("Enter");
      await page.getByRole("heading", { name: "phone" }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "phone" }).waitFor();

      await page.getByRole("button", { name: "Replace: phone" }).click();
      await page.getByLabel("stops working at once").check();
      await page.getByRole("dialog").getByRole("button", { name: "Replace" }).click();
      const second = await page.getByRole("textbox", { name: "Your new API key" }).inputValue();
      await page.getByRole("button", { name: "I have saved it" }).click();
      await page.getByText("Expired", { exact: true }).waitFor();
      assert.equal((await dashboard.server.ok("keys.verifyKey", { key })).code, "EXPIRED");
      assert.equal((await dashboard.server.ok("keys.verifyKey", { key: second })).code, "VALID");

      await page.getByRole("button", { name: "Delete: phone" }).first().click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.equal((await dashboard.server.ok("keys.verifyKey", { key: second })).code, "NOT_FOUND");
      // The key that expired stays in the list.
      const keys = page.locator("latchkey-keys").getByRole("heading", { name: "phone" });
      await keys.nth(1).waitFor({ state: "detached" });
      await keys.waitFor();
    });

    it("lists what was derived of a key, page by page, and ends it", async () => {
      const { keyId } = await dashboard.ok("keys.createKey", { apiId, externalId: "dora", name: "agents" });
      await dashboard.ok("keys.createKey", { apiId, externalId: "dora", name: "plain" });
      const made: { keyId: string; key: string }[] = [];
      for (let i = 0; i < 22; i++) {
        const ratelimits = [{ name: HOSTILE, limit: 5, duration: DAY }];
        const fields = i === 0 ? { ratelimits, credits: { max: 7 } } : {};
        made.push(await dashboard.ok("keys.deriveKey", { keyId, ttl: DAY, ...fields }));
      }
      const page = await visit({ externalId: "dora" });
      const list = page.locator("latchkey-keys .derived");
      await list.getByText("Keys derived from it: 22").click();
      const rows = list.getByRole("listitem").filter({ has: page.locator("code") });
      await eventuallyEqual(() => rows.count(), 20);
      await rows.first().getByText("7 credits left").waitFor();
      await rows.first().getByText(HOSTILE).waitFor();
      await list.getByRole("button", { name: "Show more" }).click();
      await eventuallyEqual(() => rows.count(), 22);
      await isAccessible(page);
      await rows
        .first()
        .getByRole("button", { name: /^Delete: / })
        .click();
      await page.getByRole("dialog").getByText("Programs that use this key stop working at once.").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await list.getByText("Keys derived from it: 21").waitFor();
      const { code } = await dashboard.server.ok("keys.verifyKey", { key: made[0]!.key });
      assert.equal(code, "NOT_FOUND");
      await eventuallyEqual(() => page.evaluate(() => "executed" in globalThis), false);
      const reader = await visit({ externalId: "dora", actions: ["list"] });
      await reader.getByText("Keys derived from it: 21").click();
      await reader.locator("latchkey-keys .derived code").first().waitFor();
      await eventuallyEqual(() => reader.getByRole("button", { name: /Delete/ }).count(), 0);
    });

    it("says that the maximum is reached, and offers only what the session may do", async () => {
      const full = await visit({ externalId: "carol", keys: { max: 1 } });
      // The text of the service may change.
      await full.route("**/portal/api/createKey", async (route) => {
        const response = await route.fetch();
        const { meta, error } = await response.json();
        await route.fulfill({ response, json: { meta, error: { ...error, detail: "In other words." } } });
      });
      await dashboard.ok("keys.createKey", { apiId, externalId: "carol" });
      await full.getByRole("button", { name: "Create key" }).click();
      await full.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      await full.getByText("You have 1 key, which is the maximum.").waitFor();
      await full.getByRole("button", { name: "Cancel" }).click();
      const reader = await visit({ externalId: "carol", actions: ["list"] });
      await reader.getByRole("listitem").waitFor();
      await eventuallyEqual(() => reader.getByRole("button").count(), 0);
    });

    it("says why the service makes no key", async () => {
      const { apiId: strict } = await dashboard.ok("apis.createApi", { name: "strict" });
      await dashboard.ok("apis.updateApi", { apiId: strict, policy: { limitsRequired: true } });
      const page = await visit({ apiId: strict, externalId: "dan" });
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      await page
        .getByText("Keys of this API need a limit, and none is set for you. Ask its operator for one.")
        .waitFor();
      await eventuallyEqual(() => page.getByText("which is the maximum").count(), 0);
    });

    it("shows texts as texts", async () => {
      await dashboard.ok("keys.createKey", {
        apiId,
        externalId: "mallory",
        name: HOSTILE,
        ratelimits: [{ name: HOSTILE, limit: 1, duration: DAY, autoApply: true }],
      });
      const page = await visit({ externalId: "mallory", page: { name: HOSTILE } });
      await page.getByRole("heading", { name: HOSTILE }).first().waitFor();
      await page.getByRole("button", { name: /^Delete:/ }).click();
      await page.getByRole("dialog").waitFor();
      await eventuallyEqual(() => page.evaluate(() => "executed" in globalThis), false);
    });

    it("loads the service and the logo, and says nothing about the session to either", async () => {
      const requests: { url: string; referer: string | undefined }[] = [];
      const { token, url } = await open({ page: { name: "Acme", logoUrl: LOGO } });
      const page = await dashboard.visit("/health", { as: null });
      page.on("request", (request) => requests.push({ url: request.url(), referer: request.headers().referer }));
      await page.route("https://logo.example/**", (route) =>
        route.fulfill({ contentType: "image/svg+xml", body: SVG }),
      );
      await page.goto(dashboard.address + url);
      // decode() would reject if the page sets the source meanwhile.
      await page.waitForFunction(() => {
        const logo = document.querySelector<HTMLImageElement>("#logo");
        return logo?.complete && logo.naturalWidth > 0;
      });
      await settled(page);
      const elsewhere = requests.filter(
        ({ url: one }) => !one.startsWith(dashboard.address) && !one.startsWith("data:"),
      );
      assert.deepEqual(
        elsewhere.map(({ url: one }) => one),
        [LOGO],
      );
      for (const { url: one, referer } of requests) assert(!`${one} ${referer}`.includes(token) && !referer, one);
      const blocked = await page.evaluate(async () => {
        const violation = new Promise<string>((resolve) =>
          document.addEventListener("securitypolicyviolation", (event) => resolve(event.blockedURI), { once: true }),
        );
        new Image().src = "https://logo.example/other.svg";
        return violation;
      });
      assert.match(blocked, /^https:\/\/logo\.example/);
      dashboard.forgetComplaints();
    });

    it("shows a new key whole, however narrow the page", async () => {
      const page = await visit({ externalId: "heidi" }, { width: 375, height: 812 });
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      const field = page.getByRole("textbox", { name: "Your new API key" });
      await eventuallyMatch(() => field.inputValue(), /^docs_/);
      const hidden = () =>
        field.evaluate((one) => [one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight]);
      await eventuallyEqual(hidden, [0, 0]);
      await isAccessible(page);
    });

    it("says what to do while there is no connection, and goes on after it", async () => {
      const page = await visit({ externalId: "ivan" });
      await page.getByRole("button", { name: "Create key" }).waitFor();
      await page.context().setOffline(true);
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      await page.getByText("Check that you are online, then try again.").waitFor();
      await page.context().setOffline(false);
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      await page.getByRole("textbox", { name: "Your new API key" }).waitFor();
      dashboard.forgetComplaints();
    });

    it("shows the usage of all keys in a session that may only see usage", async () => {
      const { key, keyId } = await dashboard.ok("keys.createKey", { apiId, externalId: "judy", name: "secret name" });
      for (let call = 0; call < 3; call++) await dashboard.server.ok("keys.verifyKey", { key });
      const range = { start: Date.now() - DAY, end: Date.now() + DAY, granularity: "day" };
      await eventually("the verifications to be counted", async () => {
        const { total } = await dashboard.ok("analytics.getKeyStats", { keyId, ...range });
        return total === 3;
      });
      const page = await visit({ externalId: "judy", actions: ["usage"] });
      await page.getByText("3 requests in the last 30 days").waitFor();
      await eventuallyEqual(() => page.getByText("secret name").count(), 0);
    });

    it("shows what is left of a budget only where the API says so", async () => {
      const { budgetId } = await dashboard.ok("budgets.createBudget", {
        name: "internal name",
        unit: "usd_micro",
        remaining: 12_500,
      });
      await dashboard.ok("identities.createIdentity", { externalId: "nina", budgetId });
      await dashboard.ok("keys.createKey", { apiId, externalId: "nina", name: "notebook" });
      const usual = await visit({ externalId: "nina" });
      await usual.getByRole("heading", { name: "notebook" }).waitFor();
      await settled(usual);
      await eventuallyEqual(() => usual.getByText("Left to spend").count(), 0);

      const page = await visit({ externalId: "nina", actions: [...ALL, "left"] });
      await page.getByText("Left to spend: 12,500 \u2068usd_micro\u2069", { exact: true }).waitFor();
      await isAccessible(page);
      assert.equal(await page.getByText("internal name").count(), 0);
      for (const [language, text] of Object.entries({
        de: "Noch verfügbar: 12.500",
        ja: "利用可能な残り: 12,500",
        ar: "المتاح للإنفاق: ",
      })) {
        const translated = await visit({ externalId: "nina", actions: ["list", "left"], page: { language } });
        await translated.getByText(text).waitFor();
        await fitsWindow(translated);
      }
    });

    it("says that a key has leaked", async () => {
      const { key, keyId } = await dashboard.ok("keys.createKey", {
        apiId,
        externalId: "kim",
        name: "in a repository",
      });
      await dashboard.ok("keys.reportLeak", { key });
      await eventually("the report", async () => (await dashboard.ok("keys.getKey", { keyId })).leakedAt !== undefined);
      const page = await visit({ externalId: "kim" });
      await page.getByText("Leaked", { exact: true }).waitFor();
      await page.getByText("others may know it. Replace it.").waitFor();
      await isAccessible(page);

      const reader = await visit({ externalId: "kim", actions: ["list"] });
      await reader.getByText("This key was reported as leaked: others may know it.", { exact: true }).waitFor();

      const arabic = await visit({ externalId: "kim", page: { language: "ar" } });
      await arabic.getByRole("button", { name: "استبدال: in a repository" }).click();
      const title = arabic.getByRole("dialog").getByRole("heading");
      await eventuallyEqual(() => title.textContent(), "استبدال \u2068in a repository\u2069");
    });

    it("shows eight keys on one screen", async () => {
      for (let index = 0; index < 9; index++) {
        await dashboard.ok("keys.createKey", { apiId, externalId: "leo", name: `program ${index}` });
      }
      const page = await visit({ externalId: "leo" }, { width: 1024, height: 800 });
      const keys = page.getByRole("listitem");
      await keys.nth(8).waitFor();
      await settled(page);
      const box = () => keys.nth(7).boundingBox();
      await eventuallyPasses(box, (found) => assert.ok(found && found.y + found.height <= 800, JSON.stringify(found)));
    });

    it("has corners as round as the page says, on buttons too", async () => {
      const { token } = await open({ externalId: "mia" });
      const script = `<script type="module" src="${dashboard.address}/portal/latchkey-keys.js"></script>`;
      const { address } = await otherOrigin(
        `${script}<latchkey-keys session="${token}" style="--latchkey-radius: 3px"></latchkey-keys>`,
      );
      const page = await dashboard.visit("/health", { as: null });
      await page.goto(address);
      await page.getByRole("button", { name: "Create key" }).click();
      const dialog = page.getByRole("dialog");
      for (const part of [dialog, dialog.getByRole("button").first(), dialog.getByRole("textbox")]) {
        await eventuallyEqual(() => part.evaluate((one) => getComputedStyle(one).borderRadius), "3px");
      }
    });

    it("inherits name, language and actions from the settings of its API", async () => {
      const { apiId: branded } = await dashboard.ok("apis.createApi", { name: "branded" });
      const page = await dashboard.visit(`/apis/${branded}/settings`);
      await page.getByRole("button", { name: "Set up the portal…" }).click();
      const dialog = page.getByRole("dialog", { name: "The portal of this API" });
      await dialog.getByRole("textbox", { name: "Your name" }).fill("Acme Documents");
      await dialog.getByRole("textbox", { name: "Color of buttons and links" }).fill("#8a1f5c");
      await dialog.getByLabel("Language").selectOption({ label: "Português" });
      await dialog.getByText("Delete keys", { exact: true }).click();
      await isAccessible(page);
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.getByText("list, usage, create, reroll, rename", { exact: true }).waitFor();

      await dashboard.ok("keys.createKey", { apiId: branded, externalId: "nina", name: "laptop" });
      const { url } = await dashboard.ok("portal.createSession", { apiId: branded, externalId: "nina" });
      const portal = await dashboard.visit(url, { as: null });
      await portal.getByRole("heading", { name: "Acme Documents" }).waitFor();
      await portal.getByRole("button", { name: "Substituir: laptop" }).waitFor();
      await eventuallyEqual(() => portal.getByRole("button", { name: "Excluir: laptop" }).count(), 0);

      // The dialog of a session begins with them.
      await page.getByRole("button", { name: "Create session…" }).click();
      const session = page.getByRole("dialog", { name: "Session of the portal" });
      await eventuallyEqual(() => session.getByRole("switch", { name: "Delete keys" }).isChecked(), false);
      await eventuallyEqual(() => session.getByRole("switch", { name: "Create keys" }).isChecked(), true);
    });

    it("says that the session has ended", async () => {
      const page = await visit({ externalId: "dave" });
      await page.getByRole("button", { name: "Create key" }).waitFor();
      await dashboard.ok("portal.deletePortalSessions", { apiId, identity: "dave" });
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      await page.getByText("This session has ended.").waitFor();
      await eventuallyEqual(() => page.getByRole("button").count(), 0);
      const never = await dashboard.visit("/portal#lk_portal_never", { as: null });
      await never.getByText("This session has ended.").waitFor();
      const none = await dashboard.visit("/portal", { as: null });
      await none.getByText("This session has ended.").waitFor();
    });

    const looks = [
      ...Object.keys(languages).map((language) => ({ language, width: 375, scheme: "light" as const })),
      { language: "en", width: 1024, scheme: "light" },
      { language: "en", width: 1024, scheme: "dark" },
      { language: "de", width: 375, scheme: "dark" },
      { language: "ar", width: 1024, scheme: "dark" },
    ] as const;
    for (const [i, { language, width, scheme }] of looks.entries()) {
      it(`fits and is accessible in ${language}, ${width} pixels wide, ${scheme}`, async () => {
        const owner = `look_${i}`;
        const { key } = await dashboard.ok("keys.createKey", {
          apiId,
          externalId: owner,
          name: "production",
          credits: { remaining: 9_200, refill: { interval: "monthly", amount: 10_000 } },
          ratelimits: [{ name: "requests", limit: 1_000, duration: 60_000, autoApply: true }],
        });
        await dashboard.ok("keys.createKey", {
          apiId,
          externalId: owner,
          name: "a laptop with a rather long name",
          expires: Date.now() + DAY,
        });
        await dashboard.ok("keys.createKey", { apiId, externalId: owner, enabled: false });
        for (let call = 0; call < 5; call++) await dashboard.server.ok("keys.verifyKey", { key });
        const page = await dashboard.visit(
          (
            await open({
              externalId: owner,
              keys: { max: 5, prefixes: ["live", "test"] },
              page: {
                name: "Acme Documents",
                color: ["#246bce", "#f5d90a", "#101418"][i % 3],
                language,
                returnUrl: "https://acme.example/",
              },
            })
          ).url,
          { as: null, width, height: width === 375 ? 812 : 900, scheme },
        );
        const [title, replace] = languages[language as keyof typeof languages];
        await page.getByRole("heading", { name: title, exact: true }).waitFor();
        await eventuallyEqual(() => page.evaluate(() => document.documentElement.lang), language);
        const element = page.locator("latchkey-keys");
        const direction = () => element.evaluate((one) => getComputedStyle(one).direction);
        await eventuallyEqual(direction, language === "ar" ? "rtl" : "ltr");
        await page.getByRole("button", { name: `${replace}: production` }).waitFor();
        const check = async (name: string) => {
          await fitsWindow(page);
          await isAccessible(page);
          if (images === undefined) return;
          mkdirSync(images, { recursive: true });
          await page.screenshot({ path: join(images, `${name}-${language}-${width}-${scheme}.png`), fullPage: true });
        };
        await check("portal");
        await page.getByRole("button", { name: `${replace}: production` }).click();
        await page.getByRole("dialog").waitFor();
        await check("portal-replace");
      });
    }

    /** A page of another origin, with these scripts. */
    async function otherOrigin(
      body: string,
      scripts: Record<string, string> = {},
    ): Promise<{ address: string; server: Server }> {
      const server = createServer(({ url = "/" }, response) => {
        const script = scripts[url];
        response.setHeader("content-type", script === undefined ? "text/html; charset=utf-8" : "text/javascript");
        response.end(
          script ?? `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Customer</title>${body}`,
        );
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      servers.push(server);
      return { address: `http://localhost:${(server.address() as AddressInfo).port}`, server };
    }
    const servers: Server[] = [];
    after(() => {
      for (const server of servers) server.close();
    });

    it("works as an element in a page of another origin", async () => {
      const { token } = await open({ externalId: "erin" });
      const script = `<script type="module" src="${dashboard.address}/portal/latchkey-keys.js"></script>`;
      const { address } = await otherOrigin(
        `${script}<latchkey-keys session="${token}" language="de-CH"></latchkey-keys>`,
      );
      const page = await dashboard.visit("/health", { as: null });
      await page.goto(address);
      await page.getByText("Sie haben noch keine API-Schlüssel.").waitFor();
      await page.getByRole("button", { name: "Schlüssel erstellen" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Schlüssel erstellen" }).click();
      await eventuallyMatch(
        () => page.getByRole("textbox", { name: "Ihr neuer API-Schlüssel" }).inputValue(),
        /^docs_/,
      );
    });

    it("works as a component of React, and is told of the end of the session", async () => {
      const { token } = await open({ externalId: "frank" });
      const bundle = await bundleReact(dashboard.address, token);
      const { address } = await otherOrigin('<main id="app"></main><script type="module" src="/app.js"></script>', {
        "/app.js": bundle,
      });
      const page = await dashboard.visit("/health", { as: null });
      await page.goto(address);
      await page.getByText("You have no API keys yet.").waitFor();
      await eventuallyEqual(() => page.evaluate(() => document.title), "6 actions");
      await dashboard.ok("portal.deletePortalSessions", { apiId, identity: "frank" });
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      await page.getByText("Sign in again").waitFor();
    });
  },
  ["sqlite"],
);

/** A page with the React component, as one script. */
async function bundleReact(service: string, session: string): Promise<string> {
  const component = fileURLToPath(new URL("../../sdk/src/react.ts", import.meta.url));
  const program = `
    import { createElement, useState } from "react";
    import { createRoot } from "react-dom/client";
    import { LatchkeyKeys } from ${JSON.stringify(component)};
    function App() {
      const [hasEnded, setEnded] = useState(false);
      return hasEnded ? "Sign in again" : createElement(LatchkeyKeys, {
        ...${JSON.stringify({ service, session, language: "en" })},
        onSession: ({ actions }) => { document.title = actions.length + " actions"; },
        onEnded: () => setEnded(true),
      });
    }
    createRoot(document.getElementById("app")).render(createElement(App));`;
  const entry = fileURLToPath(new URL("app.js", import.meta.url));
  const bundler = await rolldown({
    input: entry,
    platform: "browser",
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
    plugins: [
      {
        name: "app",
        resolveId: (id: string) => (id === entry ? id : null),
        load: (id: string) => (id === entry ? program : null),
      },
    ],
  });
  try {
    return (await bundler.generate({ format: "esm" })).output[0].code;
  } finally {
    await bundler.close();
  }
}
