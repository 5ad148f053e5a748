import assert from "node:assert/strict";
import { before, it } from "node:test";
import { eventually } from "../../server/test/process.ts";
import { describeOnEachStore, isAccessible, settled } from "./dashboard.ts";
import { eventuallyEqual, eventuallyMatch, eventuallyPasses } from "./waiting.ts";

describeOnEachStore("overview and analytics", (dashboard, store) => {
  let apiId: string;
  let keyId: string;

  before(async () => {
    ({ apiId } = await dashboard.ok("apis.createApi", { name: "payments" }));
    const key = await dashboard.ok("keys.createKey", {
      apiId,
      name: "ci-deploy",
      externalId: "acme",
      expires: Date.now() + 3 * 86_400_000,
    });
    keyId = key.keyId;
    for (let index = 0; index < 8; index++) {
      const tags = [index % 2 ? "path=/charges" : "path=/refunds"];
      await dashboard.ok("keys.verifyKey", {
        key: key.key,
        tags,
        ...(index === 0 && { permissions: "documents.read" }),
      });
    }
    for (let index = 0; index < 3; index++) {
      await dashboard.ok("ratelimits.limit", { namespace: "login", identifier: "user_1", limit: 2, duration: 60_000 });
    }
    const now = Date.now();
    const range = { start: now - 3_600_000, end: now + 60_000, granularity: "minute" };
    await eventually("the analytics counted everything", async () => {
      const { total } = await dashboard.ok("analytics.getApiStats", { apiId, ...range });
      const limits = await dashboard.ok("analytics.getRatelimitStats", { namespace: "login", ...range });
      return total === 8 && limits.total === 3;
    });
  });

  it("counts verifications and rate limits, and leads to what needs attention", async () => {
    const page = await dashboard.visit("/");
    await page.getByRole("list", { name: "Busiest APIs" }).getByText("payments").waitFor();
    for (const name of ["Refused", "Denied"]) {
      await page.locator("dl > div").filter({ hasText: name }).locator("dd", { hasText: /^1$/ }).first().waitFor();
    }
    await page.getByText("1 key within 14 days").click();
    await page.getByRole("link", { name: "ci-deploy", exact: true }).first().click();
    await page.waitForURL((url) => url.pathname === `/apis/${apiId}/keys/${keyId}`);
  });

  it("ranks keys and owners, shows how long verifications take, and aligns the charts", async () => {
    const page = await dashboard.visit("/");
    const keys = page.getByRole("list", { name: "Busiest keys" });
    await eventuallyMatch(() => keys.getByRole("listitem").first().textContent(), /^ci-deploy of acme13 % refused8$/);
    const figure = (name: string) => page.locator("dl > div").filter({ hasText: name });
    await eventuallyMatch(() => figure("Verification time").textContent(), /\d ms99 % in [\d.]+ ms/);
    const lately = page.getByRole("table", { name: "Verification time, at most, in ms" });
    await eventuallyMatch(() => lately.getByRole("row").last().textContent(), /[\d.]+$/);
    await eventuallyEqual(() => figure("Look-ups refused").locator("dd").first().textContent(), "0");
    // The legends differ in length; at some width one of them has more lines.
    for (const width of [1440, 950]) {
      await page.setViewportSize({ width, height: 900 });
      await settled(page);
      const plots = page.locator("figure .uplot");
      const boxes = () =>
        plots.evaluateAll((all) => all.slice(0, 2).map((plot) => plot.getBoundingClientRect().toJSON()));
      await eventuallyPasses(boxes, ([one, other]) => {
        assert.deepEqual([other.y, other.height], [one.y, one.height]);
      });
    }
    await page.getByRole("list", { name: "Busiest owners" }).getByRole("link", { name: "acme" }).click();
    await page.getByRole("heading", { name: "acme", level: 1 }).waitFor();
  });

  it("compares the busiest keys of all APIs", async () => {
    const page = await dashboard.visit("/analytics?range=24h&by=key");
    await page.getByRole("cell", { name: "ci-deploy", exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get("key") === keyId && url.searchParams.get("api") === apiId);
  });

  it("shows decisions as they are made, until it is paused", async () => {
    const page = await dashboard.visit("/");
    await page.getByRole("heading", { name: "Decisions, live" }).waitFor();
    await dashboard.ok("ratelimits.limit", { namespace: "live", identifier: "just now", limit: 2, duration: 60_000 });
    const tail = page.getByRole("list", { name: "Recent decisions" });
    await tail.getByText("just now").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Continue" }).waitFor();
  });

  it("narrows the analytics by what is clicked, and keeps the state in the address", async () => {
    const page = await dashboard.visit("/analytics?range=24h&by=owner");
    await page.getByRole("cell", { name: "acme", exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get("owner") === "acme" && !url.searchParams.has("by"));
    await page.getByRole("list", { name: "Tags" }).getByRole("button", { name: "path=/charges" }).click();
    await page.waitForURL((url) => url.searchParams.get("tags") === "path=/charges");
    const figure = page.locator("dl > div").filter({ hasText: "Verifications" }).locator("dd").first();
    await page.waitForFunction(() => document.querySelector("dl dd")?.textContent === "4");
    await page.reload();
    await figure.waitFor();
    await eventuallyEqual(() => figure.textContent(), "4");
  });

  // What is drawn does not depend on the database.
  for (const scheme of store === "sqlite" ? (["light", "dark"] as const) : []) {
    it(`is accessible (${scheme})`, async () => {
      for (const path of ["/", "/analytics?range=24h", "/analytics?range=24h&by=api"]) {
        const page = await dashboard.visit(path, { scheme });
        await page.locator("figure").first().waitFor();
        await isAccessible(page);
      }
    });
  }
});
