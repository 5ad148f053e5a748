import assert from "node:assert/strict";
import { before, it } from "node:test";
import { describeDashboard, isAccessible } from "./dashboard.ts";
import { eventuallyEqual } from "./waiting.ts";

const MINUTE = 60_000;
const CALLS = 7;

describeDashboard(
  "ranges of time",
  (dashboard) => {
    /** The minute after the one in which the keys were verified. */
    let next: number;

    before(async () => {
      const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
      const { key } = await dashboard.ok("keys.createKey", { apiId });
      for (let call = 0; call < CALLS; call++) await dashboard.ok("keys.verifyKey", { key });
      next = Math.ceil(Date.now() / MINUTE) * MINUTE;
    });

    it("have names up to a year, and days that are said to be those of UTC", async () => {
      const page = await dashboard.visit("/analytics", { timeZone: "America/New_York" });
      await page.getByText("America/New_York", { exact: true }).waitFor();
      await page.getByRole("button", { name: "1 y", exact: true }).click();
      await page.waitForURL(/range=1y/);
      await page.getByText("days in UTC", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Month", exact: true }).click();
      await page.waitForURL(/range=month/);
      const days = page.locator("figure table tbody tr");
      const dayOf = (time: number) =>
        new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" }).format(time);
      const today = new Date(next - MINUTE);
      const first = Date.UTC(today.getUTCFullYear(), today.getUTCMonth());
      await days.filter({ hasText: dayOf(next - MINUTE) }).waitFor({ state: "attached" });
      await eventuallyEqual(() => days.first().locator("td").first().textContent(), dayOf(first));
      await eventuallyEqual(() => days.count(), today.getUTCDate());
      await isAccessible(page);
    });

    it("can be chosen from one time to another, in the zone of the viewer", async () => {
      const page = await dashboard.visit("/analytics", { timeZone: "America/New_York" });
      await page.getByRole("button", { name: "From … to …" }).click();
      const dialog = page.getByRole("dialog", { name: "Choose a range" });
      await dialog.getByText("Times in America/New_York.").waitFor();
      await dialog.getByLabel("From").fill("2026-11-20T12:00");
      await dialog.getByText("2026-11-20 17:00:00 UTC").waitFor();
      await dialog.getByLabel("To").fill("2026-11-20T11:00");
      await dialog.getByText("The range ends before it begins.").waitFor();
      await isAccessible(page);
      await dialog.getByLabel("To").fill("2026-11-21T12:00");
      await dialog.getByLabel("To").press("Enter");
      await dialog.waitFor({ state: "detached" });
      const address = new URL(page.url());
      assert.equal(Number(address.searchParams.get("start")), Date.UTC(2026, 10, 20, 17));
      assert.equal(Number(address.searchParams.get("end")), Date.UTC(2026, 10, 21, 17));
      await page.getByRole("button", { name: "Back to 7d" }).click();
      await page.getByRole("button", { name: "7 d", exact: true, pressed: true }).waitFor();
    });

    it("are drawn with the period before", async () => {
      const page = await dashboard.visit(`/analytics?start=${next}&end=${next + 10 * MINUTE}`);
      await page.getByRole("button", { name: "Compare with the period before" }).click();
      await page.waitForURL(/compare=true/);
      const column = page.locator("figure table tbody tr td:last-child");
      await page.locator("figure table th", { hasText: "Period before" }).waitFor({ state: "attached" });
      await eventuallyEqual(async () => {
        const counts = (await column.allTextContents()).map(Number);
        return [counts.length, counts.reduce((sum, count) => sum + count, 0)];
      }, [10, CALLS]);
      await page.getByRole("button", { name: "Hide the period before" }).click();
      await page.locator("figure table th", { hasText: "Period before" }).waitFor({ state: "detached" });
    });
  },
  ["sqlite"],
);
