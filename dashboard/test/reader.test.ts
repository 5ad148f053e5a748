/** The pages below /docs and /reference, as a reader uses them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Page } from "playwright-core";
import { busyness } from "../../server/test/busyness.ts";
import { ROOT_KEY } from "../../server/test/process.ts";
import { type Dashboard, describeDashboard, fitsWindow, isAccessible, settled } from "./dashboard.ts";
import { eventuallyEqual, eventuallyMatch, eventuallyPasses, pressIn } from "./waiting.ts";

const FIRST_LOAD_MAX = 60_000;
/** With the form, which brings the components of the dashboard. */
const FORM_LOAD_MAX = 250_000;
/** Of Lighthouse's profile of a slow phone: 1.6 Mbit/s, 150 ms, a fourth of the processor. */
const FIRST_PAINT_MAX_MS = 2_500;

const open = (dashboard: Dashboard, path: string, options: Parameters<Dashboard["visit"]>[1] = {}) =>
  dashboard.visit(path, { as: null, ...options });

const search = (page: Page) => page.getByRole("combobox", { name: "Search documents, operations and errors" });

describeDashboard(
  "the pages for readers",
  (dashboard) => {
    const looks: { name: string; path: string; act?: (page: Page) => Promise<void> }[] = [
      { name: "the index of the documents", path: "/docs" },
      { name: "a guide", path: "/docs/limits" },
      { name: "a guide with images", path: "/docs/dashboard" },
      { name: "no page", path: "/docs/no-such-page" },
      { name: "the index of the reference", path: "/reference" },
      { name: "an operation", path: "/reference/keys.verifyKey" },
      {
        name: "the form of an operation",
        path: "/reference/keys.createKey",
        act: async (page) => {
          await page.getByRole("button", { name: "Send a request" }).click();
          await page.getByLabel("Root key").waitFor();
        },
      },
      {
        name: "the search",
        path: "/docs",
        act: async (page) => {
          await pressIn(page.locator("body"), "/");
          await search(page).fill("rotate");
          await page.getByRole("option").first().waitFor();
        },
      },
    ];
    for (const { name, path, act } of looks) {
      describe(name, () => {
        for (const scheme of ["light", "dark"] as const) {
          for (const width of [1440, 768, 375]) {
            it(`is accessible and fits, ${width} pixels wide, ${scheme}`, async () => {
              const page = await open(dashboard, path, { width, scheme });
              await settled(page);
              await act?.(page);
              await fitsWindow(page);
              await isAccessible(page);
            });
          }
        }
      });
    }

    it(`load at most ${FIRST_LOAD_MAX / 1_000} kB, with the form ${FORM_LOAD_MAX / 1_000} kB, all from this service`, async (t) => {
      for (const path of ["/docs", "/docs/limits", "/reference", "/reference/keys.verifyKey"]) {
        const page = await open(dashboard, "/errors");
        const session = await page.context().newCDPSession(page);
        await session.send("Network.enable");
        let bytes = 0;
        session.on("Network.loadingFinished", ({ encodedDataLength }) => {
          bytes += encodedDataLength;
        });
        const others: string[] = [];
        page.on("request", (request) => {
          if (!request.url().startsWith(dashboard.address)) others.push(request.url());
        });
        await page.goto(dashboard.address + path);
        await settled(page);
        t.diagnostic(`${path}: ${(bytes / 1_000).toFixed(1)} kB`);
        assert.ok(bytes > 10_000 && bytes <= FIRST_LOAD_MAX, `${path}: ${bytes} bytes`);
        if (path === "/reference/keys.verifyKey") {
          await page.getByRole("button", { name: "Send a request" }).click();
          await page.getByLabel("Root key").waitFor();
          await settled(page);
          t.diagnostic(`${path} with the form: ${(bytes / 1_000).toFixed(1)} kB`);
          assert.ok(bytes <= FORM_LOAD_MAX, `${path} with the form: ${bytes} bytes`);
        }
        assert.deepEqual(others, [], path);
      }
    });

    it(`are painted within ${FIRST_PAINT_MAX_MS / 1_000} s on a slow phone`, async (t) => {
      for (const path of ["/docs/limits", "/reference", "/reference/keys.verifyKey"]) {
        const page = await open(dashboard, "/errors", { width: 375, height: 812 });
        const ms = await firstPaint(page, dashboard.address + path);
        t.diagnostic(`${path}: ${Math.round(ms)} ms`);
        assert.ok(ms < FIRST_PAINT_MAX_MS * busyness(), `${path}: ${ms} ms`);
      }
    });

    it("find a page by the words in it, with the keyboard alone", async () => {
      const page = await open(dashboard, "/reference/keys.verifyKey");
      await pressIn(page.locator("body"), "Control+k");
      await search(page).fill("200 calls two seconds around turn minute");
      const first = page.getByRole("option").first();
      await first.getByText("Limits that fit").first().waitFor();
      await eventuallyMatch(() => first.innerText(), /200 calls/i);
      await eventuallyEqual(() => first.getAttribute("aria-selected"), "true");
      await search(page).press("ArrowDown");
      await eventuallyEqual(() => first.getAttribute("aria-selected"), "false");
      await search(page).press("ArrowUp");
      await eventuallyEqual(() => first.getAttribute("aria-selected"), "true");
      await search(page).press("Enter");
      await page.waitForURL((url) => url.pathname === "/docs/limits");

      for (const [words, path] of [
        ["verifykey", "/reference/keys.verifyKey"],
        ["keys.rerollKey", "/reference/keys.rerollKey"],
        ["lookups_exhausted", "/errors/application/lookups_exhausted"],
      ] as const) {
        await page.getByRole("button", { name: "Search" }).click();
        await search(page).fill(words);
        await page.getByRole("option").first().waitFor();
        const hrefs = () =>
          page
            .getByRole("option")
            .evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).pathname).slice(0, 5));
        await eventuallyPasses(hrefs, (found) => assert.ok(found.includes(path), `${words}: ${found}`));
        await search(page).press("Escape");
      }
    });

    it("filter the operations by name and purpose, and open the first with Enter", async () => {
      const page = await open(dashboard, "/reference");
      const field = page.getByRole("searchbox", { name: "Filter operations" }).last();
      const shown = page.locator("#reader-operations a:visible").filter({ has: page.locator("code") });
      const all = await shown.count();
      await field.fill("deleteoverride");
      await eventuallyEqual(() => shown.locator("code").allInnerTexts(), ["ratelimits.deleteOverride"]);
      await page.getByRole("status").getByText("1 operation").waitFor();
      await field.fill("no such thing");
      await eventuallyEqual(() => shown.count(), 0);
      await field.press("Escape");
      await eventuallyEqual(() => shown.count(), all);
      await field.fill(" ");
      await field.press("Enter");
      assert.equal(new URL(page.url()).pathname, "/reference", "Enter in an empty field opens a page");
      await field.fill("reroll");
      await field.press("Enter");
      await page.waitForURL((url) => url.pathname === "/reference/keys.rerollKey");
    });

    it("show an example in the chosen language everywhere, with the address of the service", async () => {
      const page = await open(dashboard, "/reference/keys.createKey");
      const code = page.locator("#reader-snippets pre:visible");
      await eventuallyEqual(
        async () => (await code.innerText()).split(" ", 2),
        ["curl", `${dashboard.address}/v2/keys.createKey`],
      );
      await page.getByRole("tab", { name: "curl" }).press("ArrowRight");
      await eventuallyMatch(() => code.innerText(), /^latchkey keys create-key --api-id /);
      await pressIn(page.getByRole("tablist"), "End");
      await eventuallyMatch(() => code.innerText(), /client\.Keys\.CreateKey/);
      await page.getByRole("tab", { name: "Python" }).click();
      await page.goto(`${dashboard.address}/reference/apis.createApi`);
      await eventuallyMatch(() => code.innerText(), /latchkey\.apis\.create_api\(/);
      await page.locator("#reader-snippets .code:visible").getByRole("button", { name: "Copy" }).click();
      const copied = () => page.evaluate(() => navigator.clipboard.readText());
      await eventuallyPasses(copied, (text) => assert.ok(text.includes(`Latchkey("${dashboard.address}")`), text));
    });

    it("send a request, and show its call in every language", async () => {
      const page = await open(dashboard, "/reference/apis.createApi");
      await page.getByRole("button", { name: "Send a request" }).click();
      await page.getByLabel("Root key").fill(ROOT_KEY);
      const send = page.getByRole("button", { name: "Send", exact: true });
      await page.getByLabel("name", { exact: true }).fill("from the reference");
      await eventuallyMatch(
        () => page.locator("#reader-snippets pre:visible").innerText(),
        /"name": "from the reference"/,
      );
      await send.click();
      await page.getByRole("status").getByText("200", { exact: true }).waitFor();
      const apis: { name: string }[] = await dashboard.ok("apis.listApis", { search: "from the reference" });
      assert.deepEqual(
        apis.map(({ name }) => name),
        ["from the reference"],
      );

      await page.getByRole("button", { name: "JSON", exact: true }).click();
      await page.getByRole("textbox", { name: "Body" }).fill('{ "nam": 1 }');
      await send.click();
      await page.getByRole("status").getByText("400", { exact: true }).waitFor();
      await page.getByText("application/invalid_input").last().waitFor();
      await page.getByRole("textbox", { name: "Body" }).fill("{");
      await page.getByText("This is no JSON.").waitFor();
      await eventuallyEqual(() => send.getAttribute("aria-disabled"), "true");
      await page.getByRole("textbox", { name: "Body" }).fill("null");
      await page.getByText("The body of this operation is an object.").waitFor();
      await page.getByRole("button", { name: "Fields", exact: true }).click();
      await eventuallyEqual(() => page.getByLabel("name", { exact: true }).inputValue(), "from the reference");
    });

    it("ask before a request that deletes", async () => {
      const { apiId } = (await dashboard.ok("apis.createApi", { name: "to delete" })) as { apiId: string };
      const count = async () => ((await dashboard.ok("apis.listApis", { search: "to delete" })) as unknown[]).length;
      const page = await open(dashboard, "/reference/apis.deleteApi");
      await page.getByRole("button", { name: "Send a request" }).click();
      await page.getByLabel("Root key").fill(ROOT_KEY);
      await page.getByLabel("apiId", { exact: true }).fill(apiId);
      const send = page.getByRole("button", { name: "Send", exact: true });
      const question = page.getByRole("alertdialog", { name: "apis.deleteApi deletes something. Send the request?" });
      await send.click();
      await question.waitFor();
      await isAccessible(page);
      await pressIn(question, "Escape");
      await question.waitFor({ state: "detached" });
      await send.click();
      // The safe answer has the focus.
      await pressIn(question, "Enter");
      await question.waitFor({ state: "detached" });
      assert.equal(await count(), 1);
      await send.click();
      await question.getByRole("button", { name: "Send and delete" }).click();
      await page.getByRole("status").getByText("200", { exact: true }).waitFor();
      assert.equal(await count(), 0);
    });

    it("say that a part cannot be loaded, with a button that reloads the page", async () => {
      const page = await open(dashboard, "/reference/apis.listApis");
      const reload = page.getByRole("button", { name: "Reload the page" });
      await page.route(/\/assets\/(call-form|search)-.*/, (route) => route.fulfill({ status: 404 }));
      await page.getByRole("button", { name: "Send a request" }).click();
      await reload.waitFor();
      await isAccessible(page);
      await pressIn(page.locator("body"), "/");
      await page.getByRole("dialog").getByText("This could not be loaded.").waitFor();
      await page.unroute(/\/assets\/(call-form|search)-.*/);
      await page.getByRole("dialog").getByRole("button", { name: "Reload the page" }).click();
      await page.getByRole("button", { name: "Send a request" }).click();
      await page.getByLabel("Root key").waitFor();
      await page.route(/\/assets\/.*\.json/, (route) => route.abort());
      await page.getByRole("button", { name: "Search" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Reload the page" }).waitFor();
      dashboard.forgetComplaints();
    });

    it("call with the session of the dashboard if no root key is given", async () => {
      const page = await dashboard.visit("/reference/apis.listApis");
      await page.getByRole("button", { name: "Send a request" }).click();
      await page.getByText("Empty: the session of the dashboard").waitFor();
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByRole("status").getByText("200", { exact: true }).waitFor();
    });

    it("keep the chosen theme from the first paint on, and share it with the dashboard", async () => {
      const page = await open(dashboard, "/docs");
      const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const light = await background();
      await page.getByRole("button", { name: "Theme: as the system" }).click();
      await page.getByRole("button", { name: "Theme: light" }).click();
      await eventuallyPasses(background, (color) => assert.notEqual(color, light));
      const dark = await background();
      // Before the module runs.
      await page.route("**/assets/reader-*.js", (route) => route.abort());
      await page.goto(`${dashboard.address}/docs/limits`);
      await eventuallyEqual(background, dark);
      await page.goto(`${dashboard.address}/sign-in`);
      await page.getByLabel("Root key").waitFor();
      await eventuallyEqual(background, dark);
      dashboard.forgetComplaints();
    });

    it("open their navigation on a phone", async () => {
      const page = await open(dashboard, "/docs/limits", { width: 375, height: 812 });
      const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Webhooks" });
      await eventuallyEqual(() => link.isVisible(), false);
      const button = page.getByRole("button", { name: "Menu" });
      await button.click();
      await eventuallyEqual(() => button.getAttribute("aria-expanded"), "true");
      await button.press("Escape");
      await eventuallyEqual(() => link.isVisible(), false);
      await button.click();
      await link.click();
      await page.waitForURL((url) => url.pathname === "/docs/webhooks");
    });

    it("lead to a heading, to the next page and to operations", async () => {
      const page = await open(dashboard, "/docs/limits#which-window");
      const heading = page.getByRole("heading", { name: "Which window" });
      const place = () => heading.evaluate((one) => one.getBoundingClientRect().y);
      // Below what stays at the top.
      await eventuallyPasses(place, (y) => assert.ok(y >= 48 && y < 200, `the heading is at ${y}`));
      await page.getByRole("navigation", { name: "Neighbouring pages" }).getByRole("link", { name: /^Next/ }).click();
      await page.waitForURL((url) => url.pathname.startsWith("/docs/") && url.pathname !== "/docs/limits");
    });
  },
  ["sqlite"],
);

/** Milliseconds until something of the page is painted, on a slow phone. */
async function firstPaint(page: Page, address: string): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 150,
    downloadThroughput: (1.6 * 1024 * 1024) / 8,
    uploadThroughput: (750 * 1024) / 8,
  });
  await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  return page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]!.startTime);
}
