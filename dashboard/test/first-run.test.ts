import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnEachStore, isAccessible, reveal } from "./dashboard.ts";
import { eventuallyWithout } from "./waiting.ts";

describeOnEachStore("the first run", (dashboard) => {
  it("leads to a verified key in three steps", async () => {
    const page = await dashboard.visit("/welcome");
    await page.getByLabel("Name").fill("payments");
    await page.getByText('"name": "payments"').first().waitFor();
    await page.getByRole("button", { name: "Create API" }).click();
    await page.getByLabel("Key name").fill("First");
    await page.getByRole("button", { name: "Python", exact: true }).click();
    await page.getByText("latchkey.keys.create_key(").waitFor();
    await page.getByRole("button", { name: "Issue key" }).click();
    const secret = await page.locator("[data-secret]").textContent();
    assert.match(secret ?? "", /^live_/);
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    await page.getByText("VALID", { exact: true }).waitFor();
    await page.getByRole("link", { name: "See all keys of the API" }).click();
    await page.getByRole("heading", { name: "payments" }).waitFor();
    await page.getByRole("link", { name: "First" }).waitFor();
    await eventuallyWithout(page, secret!);
  });

  it("says why a key is rejected", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "rejections" });
    const { keyId, key } = await dashboard.ok("keys.createKey", { apiId, permissions: ["documents.read"] });
    const page = await dashboard.visit(`/apis/${apiId}/keys/${keyId}`);
    const box = page.getByRole("region", { name: "Verify a key" });
    await reveal(page.getByRole("heading", { name: "Limits and credits" }), box);
    await box.getByLabel("Key", { exact: true }).fill(key);
    await box.getByLabel("Permission query").fill("billing.write");
    await box.getByRole("button", { name: "Verify", exact: true }).click();
    await box.getByText("INSUFFICIENT_PERMISSIONS").first().waitFor();
    await box.getByText("The permissions of the key do not satisfy billing.write.").first().waitFor();
    await box.getByText("not granted").waitFor();
    await box.getByText("Limits: not reached").waitFor();
    await box.getByLabel("Permission query").fill("documents.read");
    await box.getByLabel("Key", { exact: true }).fill("");
    await box.getByRole("button", { name: "Verify", exact: true }).click();
    await box.getByText("VALID", { exact: true }).waitFor();
    await box.getByLabel("Key", { exact: true }).fill("live_mistyped");
    await box.getByRole("button", { name: "Verify", exact: true }).click();
    await box.getByText("NOT_FOUND").first().waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const page = await dashboard.visit("/welcome", { scheme });
      await isAccessible(page);
    });
  }
});
