import assert from "node:assert/strict";
import { it } from "node:test";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, eventuallyMatch, pressIn } from "./waiting.ts";

const HOSTILE = "<img src=x onerror=alert(1)>";

describeDashboard("identities", (dashboard) => {
  it("creates an identity, changes it, and deletes it", async () => {
    const page = await dashboard.visit("/identities");
    await page.getByRole("button", { name: "Create identity" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("External id").fill("acme");
    await dialog.getByLabel("Metadata").fill('{ "plan": "trial" }');
    await dialog.getByRole("button", { name: "Add limit" }).click();
    await dialog.getByRole("button", { name: "Limit calls at once" }).click();
    await dialog.getByLabel("Calls at once", { exact: true }).fill("2");
    await dialog.getByRole("button", { name: "Create identity" }).click();
    await page.getByRole("heading", { name: "acme" }).waitFor();
    const created = await dashboard.ok("identities.getIdentity", { identity: "acme" });
    assert.deepEqual(created.meta, { plan: "trial" });
    assert.equal(created.ratelimits[0].limit, 100);
    assert.deepEqual(created.concurrency, [{ name: "calls", limit: 2, inUse: 0 }]);

    await page.getByRole("button", { name: "Edit the metadata" }).click();
    await page.getByLabel("Metadata", { exact: true }).fill('{ "plan": "pro" }');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the metadata" }).waitFor();
    const changed = await dashboard.ok("identities.getIdentity", { identity: "acme" });
    assert.deepEqual(changed, { ...created, meta: { plan: "pro" } });

    await page.getByRole("button", { name: "Actions" }).click();
    await page.getByRole("menuitem", { name: "Delete the identity…" }).click();
    await page.getByLabel("Type acme to confirm").fill("acme");
    await page.getByRole("button", { name: "Delete identity" }).click();
    await page.waitForURL((url) => url.pathname === "/identities");
    assert.equal((await dashboard.server.call("identities.getIdentity", { identity: "acme" })).status, 404);
  });

  it("leads to the keys of an identity in each API", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
    await dashboard.ok("apis.createApi", { name: "unused" });
    for (let index = 0; index < 2; index++) await dashboard.ok("keys.createKey", { apiId, externalId: "globex" });
    const { id } = await dashboard.ok("identities.getIdentity", { identity: "globex" });
    const page = await dashboard.visit(`/identities/${id}`);
    await page.getByRole("link", { name: "payments 2 keys" }).click();
    await page.waitForURL((url) => url.pathname === `/apis/${apiId}` && url.searchParams.get("owner") === "globex");
    await eventuallyEqual(() => page.getByText("unused").count(), 0);
  });

  it("shows each key with its state, limits and use, and is reached from every key and its owner's name", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "reports" });
    const limit = { name: "requests", limit: 5, duration: 60_000, autoApply: true };
    const body = { apiId, externalId: "initech", name: "nightly", ratelimits: [limit], credits: { remaining: 7 } };
    const { keyId, key } = await dashboard.ok("keys.createKey", body);
    const off = await dashboard.ok("keys.createKey", { apiId, externalId: "initech", name: "old", enabled: false });
    await dashboard.ok("keys.verifyKey", { key });
    const end = Math.ceil(Date.now() / 3_600_000) * 3_600_000;
    const used = { keyIds: [keyId], start: end - 3_600_000, end };
    await eventually("the verification to be counted", async () => {
      return (await dashboard.ok("analytics.listUsage", used)).keys[0].total === 1;
    });
    const { id } = await dashboard.ok("identities.getIdentity", { identity: "initech" });
    const page = await dashboard.visit(`/apis/${apiId}`);
    const isThere = () => page.waitForURL((url) => url.pathname === `/identities/${id}`);
    await page.getByRole("link", { name: "initech" }).first().click();
    await isThere();
    const shown = page.getByRole("list", { name: "Keys in reports" }).getByRole("listitem");
    const nightly = shown.filter({ hasText: "nightly" });
    await nightly.getByRole("img", { name: "1 verifications in the last 36 hours" }).waitFor();
    for (const part of ["Active", "6 credits remain", "requests: 5", "used"]) {
      await nightly.getByText(part).first().waitFor();
    }
    await eventuallyMatch(() => shown.filter({ hasText: "old" }).textContent(), /Disabled.*never used/);
    await nightly.getByRole("link", { name: "nightly" }).click();
    await page.waitForURL((url) => url.pathname.endsWith(keyId));
    await page.getByRole("link", { name: "initech" }).first().click();
    await isThere();
    await page.goto(`${dashboard.address}/apis/${apiId}?key=${off.keyId}`);
    await page.getByRole("complementary").getByRole("link", { name: "initech" }).click();
    await isThere();
  });

  it("opens the portal of an identity", async () => {
    const { id } = await dashboard.ok("identities.getIdentity", { identity: "globex" });
    const page = await dashboard.visit(`/identities/${id}`);
    await page.getByRole("button", { name: "Portal session…" }).click();
    await page.getByLabel("API").selectOption({ label: "payments" });
    await page.getByRole("button", { name: "Create session" }).click();
    const opened = page.waitForEvent("popup");
    await page.getByRole("link", { name: "Open the portal" }).click();
    const portal = await opened;
    await portal.getByRole("heading", { name: "API keys", exact: true, level: 2 }).waitFor();
    await portal
      .getByRole("button", { name: /^Replace:/ })
      .first()
      .waitFor();
  });

  it("shows metadata as text, and says which permission is missing", async () => {
    const { identityId } = await dashboard.ok("identities.createIdentity", {
      externalId: "hostile",
      meta: { note: HOSTILE },
    });
    const reader = await dashboard.ok("rootKeys.createRootKey", {
      name: "reader",
      permissions: ["identities.*.read_identity"],
    });
    const page = await dashboard.visit(`/identities/${identityId}`, { as: reader.key });
    await page.getByText(HOSTILE).first().waitFor();
    await eventuallyEqual(() => page.locator("main img").count(), 0);
    const edit = page.getByRole("button", { name: "Edit the metadata" });
    await eventuallyEqual(() => edit.getAttribute("aria-disabled"), "true");
    await edit.press("Tab");
    await pressIn(page.locator("body"), "Shift+Tab");
    await page.getByText("The root key lacks the permission identities.*.update_identity").waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const { id } = await dashboard.ok("identities.getIdentity", { identity: "globex" });
      for (const path of ["/identities", `/identities/${id}`]) {
        const page = await dashboard.visit(path, { scheme });
        await isAccessible(page);
      }
    });
  }
});
