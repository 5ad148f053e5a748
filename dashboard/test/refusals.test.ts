import { before, it } from "node:test";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, fitsWindow, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, eventuallyMatch } from "./waiting.ts";

describeDashboard(
  "refusals",
  (dashboard) => {
    let apiId: string;
    let keyId: string;

    before(async () => {
      ({ apiId } = await dashboard.ok("apis.createApi", { name: "payments" }));
      const { key, ...created } = await dashboard.ok("keys.createKey", {
        apiId,
        name: "spent",
        credits: { remaining: 20 },
      });
      keyId = created.keyId;
      for (let call = 0; call < 21; call++) await dashboard.ok("keys.verifyKey", { key });
      const range = { start: Date.now() - 3_600_000, end: Date.now() + 60_000 };
      await eventually("all calls in the statistics", async () => {
        const { total } = await dashboard.ok("analytics.getKeyStats", { keyId, ...range });
        return total === 21;
      });
    });

    it("are seen beside many more valid calls", async () => {
      const page = await dashboard.visit(`/apis/${apiId}/keys/${keyId}`);
      await page.getByText("Exhausted", { exact: true }).waitFor();
      const valid = page.getByRole("button", { name: /^VALID/ }).first();
      await valid.waitFor();
      const refused = page.getByRole("button", { name: /^USAGE_EXCEEDED/ }).first();
      await page.getByRole("button", { name: "Refusals only" }).first().click();
      await eventuallyEqual(() => valid.getAttribute("aria-pressed"), "false");
      await eventuallyEqual(() => refused.getAttribute("aria-pressed"), "true");
      await isAccessible(page);
      await valid.click();
      await eventuallyEqual(() => valid.getAttribute("aria-pressed"), "true");
    });

    it("have their colour in the bars of a row", async () => {
      const page = await dashboard.visit(`/apis/${apiId}`);
      await page.getByText("Exhausted", { exact: true }).waitFor();
      const bars = page.locator("svg .fill-code-limited").first();
      await bars.waitFor({ state: "attached" });
      await eventuallyMatch(() => bars.getAttribute("d"), /^M/);
    });
  },
  ["sqlite"],
);

describeDashboard(
  "tables",
  (dashboard) => {
    let path: string;

    before(async () => {
      const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
      path = `/apis/${apiId}`;
      await dashboard.ok("keys.createKey", { apiId, name: "ci-deploy", prefix: "live", externalId: "acme" });
    });

    it("leave columns out where they would be wider than the window", async () => {
      const page = await dashboard.visit(path);
      for (const place of [path, "/apis"]) {
        await page.goto(dashboard.address + place);
        for (const width of [900, 1000, 1096, 1200, 1440]) {
          await page.setViewportSize({ width, height: 900 });
          await page.getByRole("row").nth(1).waitFor();
          await fitsWindow(page, place);
        }
        await page.getByRole("columnheader", { name: /36 hours/ }).waitFor();
      }
    });

    it("show target and change of an audit event on a card", async () => {
      const page = await dashboard.visit("/audit", { width: 375, height: 812 });
      const card = page.getByRole("row", { name: /createKey/ }).first();
      await card.getByText("Target").waitFor();
      await card.getByText(/^key_/).waitFor();
      await card.getByText(/ci-deploy/).waitFor();
    });
  },
  ["sqlite"],
);
