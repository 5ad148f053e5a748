import assert from "node:assert/strict";
import { before, it } from "node:test";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, isAccessible, reveal } from "./dashboard.ts";
import { eventuallyEqual } from "./waiting.ts";

describeDashboard("rate limits", (dashboard) => {
  const limit = (identifier: string, cost = 1) =>
    dashboard.ok("ratelimits.limit", { namespace: "login", identifier, limit: 2, duration: 3_600_000, cost });
  let namespaceId: string;

  before(async () => {
    for (let index = 0; index < 4; index++) await limit("user_1");
    await limit("partner-7");
    [{ id: namespaceId }] = await dashboard.ok("ratelimits.listNamespaces", {});
    const now = Date.now();
    await eventually("the decisions were counted", async () => {
      const range = { start: now - 3_600_000, end: now + 60_000 };
      return (await dashboard.ok("analytics.getRatelimitStats", { namespace: "login", ...range })).total === 5;
    });
  });

  it("overrides the limit of a denied identifier, changes the override, and deletes it", async () => {
    const page = await dashboard.visit("/ratelimits");
    await page.getByRole("link", { name: "login" }).click();
    await page.getByRole("button", { name: "Override user_1" }).click();
    const dialog = page.getByRole("dialog");
    await eventuallyEqual(() => dialog.getByLabel("Identifier or pattern").inputValue(), "user_1");
    await dialog.getByLabel("At most").fill("50");
    await dialog.getByRole("button", { name: "Create override" }).click();
    const table = page.getByRole("table", { name: "Overrides" });
    await table.getByText("50 per minute").waitFor();
    assert.equal((await limit("user_1", 0)).limit, 50);

    await table.getByText("50 per minute").click();
    await dialog.getByLabel("At most").fill("60");
    await dialog.getByLabel("Mode").selectOption("Strict");
    await dialog.getByText("Strict: never more than the limit in any trailing window").waitFor();
    await dialog.getByRole("button", { name: "Save override" }).click();
    await table.getByText("60 per minute, strict").waitFor();

    await table.getByRole("button", { name: "Delete the override of user_1" }).click();
    await page.getByRole("button", { name: "Delete override", exact: true }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await table.getByText("60 per minute, strict").waitFor();
    assert.equal((await limit("user_1", 0)).limit, 60);
    const { overrides } = await dashboard.ok("ratelimits.listOverrides", { namespace: "login" });
    assert.equal(overrides[0].mode, "strict", "taking the deletion back keeps the mode");
  });

  it("puts an override and a limit of a key into shadow mode, which deny nothing", async () => {
    const override = { namespace: "login", identifier: "user_2", limit: 0, duration: 60_000 };
    await dashboard.ok("ratelimits.setOverride", override);
    const page = await dashboard.visit(`/ratelimits/${namespaceId}`);
    const table = page.getByRole("table", { name: "Overrides" });
    await table.getByText("user_2").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Effect").selectOption("Shadow mode: denies nothing");
    await dialog.getByText("What it would deny, it does not count.").waitFor();
    await dialog.getByRole("button", { name: "Save override" }).click();
    await table.getByText("0 per minute, in shadow mode").waitFor();
    assert.equal((await limit("user_2")).success, true);
    await table.getByRole("button", { name: "Delete the override of user_2" }).click();
    await page.getByRole("button", { name: "Delete override", exact: true }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await table.getByText("0 per minute, in shadow mode").waitFor();

    const { apiId } = await dashboard.ok("apis.createApi", { name: "Uploads" });
    const ratelimits = [{ name: "requests", limit: 1, duration: 3_600_000, autoApply: true }];
    const { keyId, key } = await dashboard.ok("keys.createKey", { apiId, ratelimits });
    await page.goto(page.url().replace(/\/ratelimits.*/, `/apis/${apiId}/keys/${keyId}`));
    await page.getByRole("button", { name: "Edit the limits" }).click();
    await page.getByText("Shadow mode").click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("1 per hour, in shadow mode").waitFor();
    for (let i = 0; i < 3; i++) assert.equal((await dashboard.ok("keys.verifyKey", { key })).code, "VALID");
  });

  it("tells which override holds, without charging", async () => {
    await dashboard.ok("ratelimits.setOverride", {
      namespace: "login",
      identifier: "partner-*",
      limit: 900,
      duration: 3_600_000,
    });
    await dashboard.ok("ratelimits.setOverride", { namespace: "login", identifier: "*", limit: 5, duration: 60_000 });
    const page = await dashboard.visit(`/ratelimits/${namespaceId}`);
    await page.getByRole("button", { name: "Check an identifier…" }).click();
    await page.getByLabel("Identifier", { exact: true }).fill("partner-8");
    await page.getByLabel("Identifier", { exact: true }).press("Enter");
    await page.locator("[data-override]", { hasText: "partner-*" }).waitFor();
    await page.getByText("0 used of 900 per hour", { exact: true }).waitFor();
    await page.getByText("Never more than the limit in any trailing window").click();
    await page.getByRole("button", { name: "Check the limit" }).click();
    await page.getByText("0 used of 900 per hour, strict", { exact: true }).waitFor();
    await page.getByText("no charge counts").waitFor();
    const tooltip = page.getByRole("tooltip", { name: /^Never more than the limit in any trailing window/ });
    // The list is drawn anew when it has been read again, without the focus.
    await eventually("the tooltip", async () => {
      await page.getByText("strict", { exact: true }).first().focus();
      return tooltip.isVisible();
    });
    assert.equal((await limit("partner-8", 0)).remaining, 900);
  });

  it("lists the descriptors of a namespace with what leads to them", async () => {
    const page = await dashboard.visit(`/ratelimits/${namespaceId}`);
    const heading = page.getByRole("heading", { name: "Descriptors" });
    await reveal(heading, page.getByText("None. Envoy’s rate limit service applies them"));
    const limit = { requests_per_unit: 5_000, unit: "minute" };
    const login = { key: "path", value: "/login*", share_threshold: true, shadow_mode: true, rate_limit: limit };
    const descriptors = [{ key: "remote_address", descriptors: [login] }];
    await dashboard.ok("ratelimits.setDescriptors", { namespace: "login", descriptors, atomic: true });
    await page.reload();
    const table = page.getByRole("table", { name: "Descriptors" });
    await reveal(heading, table.getByText("remote_address › path=/login*"));
    await table.getByText("5,000 per minute").waitFor();
    await table.getByText("together, denies nothing").waitFor();
    await page.getByText("A call charges all its descriptors or none.").waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      for (const path of ["/ratelimits", `/ratelimits/${namespaceId}`]) {
        const page = await dashboard.visit(path, { scheme });
        await page.locator("figure, [role=table]").first().waitFor();
        await isAccessible(page);
      }
    });
  }
});
