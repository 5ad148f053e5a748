import assert from "node:assert/strict";
import { it } from "node:test";
import { describeDashboard, isAccessible } from "./dashboard.ts";
import { enterResult, eventuallyEqual, eventuallyPasses, openPalette } from "./waiting.ts";

describeDashboard("APIs", (dashboard) => {
  it("creates an API, changes it, and deletes it", async () => {
    const page = await dashboard.visit("/apis");
    await page.getByRole("button", { name: "Create your first API" }).click();
    await page.getByLabel("Name").fill("checkout");
    await page.getByLabel("Name").press("Enter");
    await page.getByRole("heading", { name: "checkout" }).waitFor();
    await page.waitForURL(/\/apis\/api_/);
    const apiId = new URL(page.url()).pathname.split("/").at(-1)!;

    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Settings of the API" }).click();
    await page.getByRole("button", { name: "Edit the default prefix" }).click();
    await page.getByLabel("Default prefix").fill("co");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("co_", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Edit the allowed addresses" }).click();
    await page.getByRole("textbox", { name: "Allowed addresses" }).fill("10.0.0.0/8 ");
    await page.getByText('"allowedIps": ["10.0.0.0/8"]').waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the allowed addresses" }).waitFor();
    const api = await dashboard.ok("apis.getApi", { apiId });
    assert.deepEqual([api.prefix, api.allowedIps, api.name], ["co", ["10.0.0.0/8"], "checkout"]);

    await page.getByRole("link", { name: "checkout" }).click();
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Delete the API…" }).click();
    const confirm = page.getByRole("button", { name: "Delete API" });
    await eventuallyEqual(() => confirm.getAttribute("aria-disabled"), "true");
    await page.getByLabel("Type checkout to confirm").fill("checkout");
    await confirm.click();
    await page.waitForURL((url) => url.pathname === "/apis");
    assert.equal((await dashboard.server.call("apis.getApi", { apiId })).status, 404);
  });

  it("is reached by keyboard alone, with the command palette", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "by keyboard" });
    const page = await dashboard.visit("/welcome");
    await page.getByRole("heading", { name: "Your first key" }).waitFor();
    // By a part of its name it is below the commands about it.
    const results = await openPalette(page, apiId);
    const found = results.getByRole("menuitem", { name: /^by keyboard/ });
    await found.waitFor();
    await isAccessible(page);
    await enterResult(found);
    await page.waitForURL((url) => url.pathname === `/apis/${apiId}`);
  });

  it("keeps the chosen theme", async () => {
    const page = await dashboard.visit("/apis");
    const color = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await color();
    await page.getByRole("button", { name: "Theme" }).click();
    await page.getByRole("menuitem", { name: "Dark" }).click();
    await page.locator('html[data-theme="dark"]').waitFor({ state: "attached" });
    await eventuallyPasses(color, (dark) => assert.notEqual(dark, light));
    await page.reload();
    await page.getByRole("heading", { name: "APIs", exact: true }).waitFor();
    await eventuallyPasses(color, (dark) => assert.notEqual(dark, light));
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const page = await dashboard.visit("/apis", { scheme });
      await isAccessible(page);
    });
  }
});
