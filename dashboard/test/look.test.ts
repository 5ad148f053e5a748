/**
 * Every page with real data: at three widths and in both themes nothing is wider than the window, and axe finds no
 * violation. With `--images` the screenshots of docs/images are written too.
 */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { describeDashboard, isAccessible, settled } from "./dashboard.ts";
import { fill } from "./example-data.ts";

const images = process.env.LATCHKEY_TEST_IMAGES;
const widths = [1440, 768, 375];

describeDashboard(
  "the look of",
  (dashboard) => {
    let apiId: string;
    let keyId: string;

    before(async () => {
      ({ apiId, keyId } = await fill(dashboard));
    });

    const pages: { name: string; path: () => string; as?: null; act?: (page: Page) => Promise<void> }[] = [
      { name: "sign-in", path: () => "/sign-in", as: null },
      { name: "welcome", path: () => "/welcome" },
      { name: "overview", path: () => "/" },
      { name: "apis", path: () => "/apis" },
      { name: "keys", path: () => `/apis/${apiId}` },
      { name: "key-panel", path: () => `/apis/${apiId}?key=${keyId}` },
      { name: "key", path: () => `/apis/${apiId}/keys/${keyId}` },
      {
        name: "create-key",
        path: () => `/apis/${apiId}`,
        act: async (page) => {
          await page.getByRole("button", { name: "Create key" }).click();
          await page.getByRole("button", { name: /^Trial/ }).click();
        },
      },
      { name: "analytics", path: () => "/analytics" },
      { name: "identities", path: () => "/identities" },
      { name: "ratelimits", path: () => "/ratelimits" },
      { name: "roles", path: () => "/roles" },
      { name: "audit", path: () => "/audit" },
      { name: "root-keys", path: () => "/root-keys" },
      { name: "workspaces", path: () => "/workspaces" },
      { name: "settings", path: () => "/settings" },
    ];

    for (const { name, path, as, act } of pages) {
      describe(name, () => {
        for (const scheme of ["light", "dark"] as const) {
          for (const width of widths) {
            it(`${width} pixels wide, ${scheme}`, async () => {
              const page = await dashboard.visit(path(), {
                width,
                height: width === 375 ? 812 : 900,
                scheme,
                ...(as === null && { as }),
              });
              await settled(page);
              await act?.(page);
              await settled(page);
              const overflow = await page.evaluate(
                () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
              );
              assert.equal(overflow, 0, `the page is ${overflow} pixels wider than the window`);
              await isAccessible(page);
              if (images === undefined || (scheme === "dark" && width !== 1440)) return;
              mkdirSync(images, { recursive: true });
              const file = `dashboard-${name}-${width}${scheme === "dark" ? "-dark" : ""}.png`;
              await page.screenshot({ path: join(images, file) });
            });
          }
        }
      });
    }
  },
  ["sqlite"],
);
