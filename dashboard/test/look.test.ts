/**
 * Every page with real data: at three widths and in both themes nothing is wider than the window, and axe finds no
 * violation. With `--images` each page is also taken as a picture.
 */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { before, it } from "node:test";
import type { Cookie, Page } from "playwright-core";
import { ROOT_KEY } from "../../server/test/process.ts";
import { describeDashboard, fitsWindow, isAccessible, settled } from "./dashboard.ts";
import { DEMO_KEYS, demoPlaces } from "./demo-places.ts";

/** Texts of the page with backticks, except for code. */
function markedTexts(page: Page): Promise<(string | null)[]> {
  return page
    .locator("body *:not(script, style, pre, code):not(:has(*))")
    .evaluateAll((elements) => elements.map(({ textContent }) => textContent).filter((text) => text?.includes("`")));
}

const images = process.env.LATCHKEY_TEST_IMAGES;
const widths = [1440, 768, 375];

describeDashboard(
  "the look of",
  (dashboard) => {
    /** A session of each root key, so that the audit log is not full of signing in. */
    const sessions = new Map<string | undefined, Cookie[]>();
    let places: Awaited<ReturnType<typeof demoPlaces>>;

    before(async () => {
      places = await demoPlaces(dashboard);
    });

    const pages: { name: string; path: () => string; as?: string | null; act?: (page: Page) => Promise<void> }[] = [
      { name: "sign-in", path: () => "/sign-in", as: null },
      { name: "welcome", path: () => "/welcome" },
      { name: "overview", path: () => "/" },
      { name: "analytics", path: () => "/analytics" },
      { name: "apis", path: () => "/apis" },
      { name: "api-settings", path: () => `${places.api}/settings?format=gitleaks` },
      { name: "keys", path: () => places.api },
      { name: "key-panel", path: () => `${places.api}?key=${places.keyId}` },
      { name: "key", path: () => places.key },
      {
        name: "create-key",
        path: () => places.api,
        act: async (page) => {
          await page.getByRole("button", { name: "Create key" }).click();
          await page.getByRole("button", { name: /^Trial/ }).click();
        },
      },
      { name: "identities", path: () => "/identities" },
      { name: "identity", path: () => places.identity },
      { name: "budgets", path: () => "/budgets" },
      { name: "budget", path: () => places.budget },
      {
        name: "create-budget",
        path: () => places.budget,
        act: async (page) => {
          await page.getByRole("button", { name: "Create budget below" }).click();
          await page.getByLabel("Refill", { exact: true }).selectOption("yearly");
        },
      },
      { name: "plans", path: () => "/plans" },
      {
        name: "plan",
        path: () => places.plan,
        act: async (page) => {
          await page.getByRole("button", { name: "Edit the limits" }).click();
          await page.getByLabel("At most").fill("1000");
          await page.getByText("1,000 per minute").waitFor();
        },
      },
      { name: "ratelimits", path: () => "/ratelimits" },
      { name: "namespace", path: () => places.namespace },
      { name: "roles", path: () => "/roles" },
      { name: "audit", path: () => "/audit" },
      { name: "decisions", path: () => "/decisions?outcome=refused" },
      { name: "events", path: () => "/events" },
      { name: "webhooks", path: () => "/webhooks" },
      { name: "webhook", path: () => places.webhook },
      { name: "root-keys", path: () => "/root-keys" },
      { name: "workspaces", path: () => "/workspaces", as: ROOT_KEY },
      { name: "settings", path: () => "/settings", as: ROOT_KEY },
    ];

    for (const { name, path, as, act } of pages) {
      it(name, async () => {
        const cookies = as === null ? undefined : sessions.get(as);
        // One window for all six: opening it costs more than what it loads.
        const page = await dashboard.visit("/health/live", {
          ...(as !== undefined && { as }),
          ...(cookies && { cookies }),
        });
        if (as !== null) sessions.set(as, await page.context().cookies());
        for (const scheme of ["light", "dark"] as const) {
          for (const width of widths) {
            const what = `${width} pixels wide, ${scheme}`;
            await page.setViewportSize({ width, height: width === 375 ? 812 : 900 });
            await page.emulateMedia({ colorScheme: scheme });
            await page.goto(dashboard.address + path());
            await page.locator("h1").first().waitFor();
            await settled(page);
            await act?.(page);
            await fitsWindow(page, what);
            assert.deepEqual(await markedTexts(page), [], `Markdown is shown as it is written, ${what}`);
            await isAccessible(page, what);
            if (images === undefined || (scheme === "dark" && width !== 1440)) continue;
            mkdirSync(images, { recursive: true });
            const file = `dashboard-${name}-${width}${scheme === "dark" ? "-dark" : ""}.png`;
            await page.screenshot({ path: join(images, file) });
          }
        }
      });
    }
  },
  ["sqlite"],
  DEMO_KEYS,
);
