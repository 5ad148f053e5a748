import assert from "node:assert/strict";
import { before, it } from "node:test";
import { describeDashboard, fitsWindow, isAccessible } from "./dashboard.ts";
import { eventuallyEqual } from "./waiting.ts";

describeDashboard("roles and permissions", (dashboard) => {
  const slugsOf = async (role: string): Promise<string[]> => {
    const { permissions = [] } = await dashboard.ok("permissions.getRole", { role });
    return permissions.map(({ slug }: { slug: string }) => slug);
  };

  before(async () => {
    await dashboard.ok("permissions.createRole", { name: "reader", permissions: ["documents.read"] });
    await dashboard.ok("permissions.createRole", { name: "finance", permissions: ["billing.*", "billing.view"] });
    await dashboard.ok("permissions.createPermission", { slug: "billing.pay", name: "Pay bills" });
  });

  it("gives a role a permission in the matrix, and takes it back", async () => {
    const page = await dashboard.visit("/roles");
    const box = page.getByRole("checkbox", { name: "reader: billing.pay" });
    await box.press("Space");
    await page.getByText("reader has billing.pay now.").waitFor();
    assert.deepEqual(await slugsOf("reader"), ["billing.pay", "documents.read"]);
    await page.getByRole("button", { name: "Undo" }).click();
    await eventuallyEqual(() => slugsOf("reader"), ["documents.read"]);
    await eventuallyEqual(() => box.isChecked(), false);
    await page.getByRole("checkbox", { name: "finance: billing.pay, by a wildcard" }).waitFor();
  });

  it("tries a query as a verification decides it", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
    const { key } = await dashboard.ok("keys.createKey", { apiId, name: "of finance", roles: ["finance"] });
    const query = "billing.pay AND (documents.read OR billing.view)";
    const page = await dashboard.visit("/roles");
    await page.getByLabel("Permission query").fill(query);
    await page.getByLabel("Also for a key").fill(key);
    await page.getByLabel("Also for a key").press("Enter");
    const row = (name: string) => page.getByRole("listitem").filter({ hasText: name });
    await row("Key of finance").getByLabel("Satisfied:", { exact: true }).waitFor();
    await row("reader").getByLabel("Not satisfied:").waitFor();
    const { code } = await dashboard.ok("keys.verifyKey", { key, permissions: query });
    assert.equal(code, "VALID");
    assert.ok(!page.url().includes(key));

    await page.getByLabel("Permission query").fill("billing.pay AND (");
    const { body } = await dashboard.server.call("keys.verifyKey", { key, permissions: "billing.pay AND (" });
    const message = await page.getByText(/^Unexpected end at position 17/).textContent();
    assert.ok(JSON.stringify(body).includes(message!.split(":")[0]!), "the same error as the service");
  });

  it("creates a role, and deletes it", async () => {
    const page = await dashboard.visit("/roles");
    await page.getByRole("button", { name: "Create role" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("auditor");
    await dialog.getByLabel("Permissions", { exact: true }).fill("audit.read,");
    await dialog.getByRole("button", { name: "Create role" }).click();
    await page.getByText("Created the role auditor.").waitFor();
    assert.deepEqual(await slugsOf("auditor"), ["audit.read"]);
    await page.getByRole("button", { name: "Actions of the role auditor" }).click();
    await page.getByRole("menuitem", { name: "Delete the role…" }).click();
    await page.getByLabel("Type auditor to confirm").fill("auditor");
    await page.getByRole("button", { name: "Delete role" }).click();
    await page.getByText("Deleted the role auditor.").waitFor();
    assert.equal((await dashboard.server.call("permissions.getRole", { role: "auditor" })).status, 404);
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const page = await dashboard.visit("/roles?query=documents.read", { scheme, width: 375 });
      await page.getByRole("list", { name: "Who satisfies the query" }).waitFor();
      await isAccessible(page);
      await fitsWindow(page);
    });
  }
});
