import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnEachStore, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, eventuallyWithout } from "./waiting.ts";

describeOnEachStore("workspaces and settings", (dashboard, store) => {
  it("creates a workspace with its administrator, changes it, and disables it", async () => {
    const page = await dashboard.visit("/workspaces");
    await page.getByRole("button", { name: "Create workspace" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Globex");
    await dialog.getByLabel("Requests per minute").fill("600");
    await dialog.getByRole("button", { name: "Create workspace" }).click();
    const administrator = (await page.locator("[data-secret]").textContent())!;
    await page.getByRole("button", { name: "I have stored it" }).click();
    assert.equal((await dashboard.server.call("apis.listApis", {}, administrator)).status, 200);

    await page.getByRole("button", { name: "Edit Globex" }).click();
    await dialog.getByLabel("Requests per minute").fill("");
    await dialog.getByRole("button", { name: "Save workspace" }).click();
    await page.getByText("Saved the workspace Globex.").waitFor();
    const [changed] = await dashboard.ok("workspaces.listWorkspaces", { search: "Globex" });
    assert.equal(changed.requestsPerMinute, undefined);

    await page.getByRole("button", { name: "Disable Globex" }).click();
    await page.getByLabel("Type Globex to confirm").fill("Globex");
    await page.getByRole("button", { name: "Disable workspace" }).click();
    await page.getByRole("button", { name: "Enable Globex" }).waitFor();
    assert.notEqual((await dashboard.server.call("apis.listApis", {}, administrator)).status, 200);
  });

  it("shows the health and the configuration without secrets", async () => {
    const page = await dashboard.visit("/settings");
    await page.getByRole("heading", { name: "Health" }).waitFor();
    await page.getByText(store === "sqlite" ? "every 6 hours" : "make backups with its own tools").waitFor();
    await page.getByText("LATCHKEY_LOG_LEVEL", { exact: true }).waitFor();
    await page.getByRole("searchbox", { name: "Search settings" }).fill("vault_key");
    await page.getByText("secret, set").first().waitFor();
    await page.waitForURL(/q=vault_key/);
    await eventuallyWithout(page, Buffer.alloc(32, 7).toString("base64"));
  });

  it("shows the edges that ask the node", async () => {
    const edge = { id: "edge_0000000000000001", kind: "process", version: "0.1.0", records: 1_200, reports: 0 };
    const ask = { tagKey: "A".repeat(32), edge: { ...edge, name: "frankfurt", leases: 12 } };
    assert.equal((await dashboard.server.call("replica.listChanges", ask)).status, 200);
    const page = await dashboard.visit("/settings");
    await page.getByRole("heading", { name: "Edges" }).waitFor();
    await page.getByText("frankfurt").waitFor();
    await page.getByText("1,200 keys in memory, 12 leases of limits").waitFor();
    await isAccessible(page);
  });

  it("says in the header that the disk is full", async () => {
    const page = await dashboard.visit("/settings");
    await page.getByText("Healthy", { exact: true }).waitFor();
    await page.route("**/health/ready", (route) =>
      route.fulfill({ json: { status: "degraded", checks: { storage: "full" } } }),
    );
    await page.reload();
    await page.getByText("Degraded: disk full", { exact: true }).waitFor();
  });

  it("says which permission a root key lacks", async () => {
    const { key } = await dashboard.ok("rootKeys.createRootKey", {
      name: "verifier",
      permissions: ["apis.*.verify_key"],
    });
    const page = await dashboard.visit("/settings", { as: key });
    await page.getByText("It lacks the permission system.*.read_status.").waitFor();
    const lacks = {
      "/workspaces": "workspaces.*.read_workspace",
      "/root-keys": "rootKeys.*.read_root_key",
      "/identities": "identities.*.read_identity",
      "/ratelimits": "ratelimits.*.read_namespace",
      "/roles": "permissions.*.read_role",
      "/audit": "audit.*.read_event",
      "/analytics": "apis.*.read_api",
    };
    for (const [path, permission] of Object.entries(lacks)) {
      await page.goto(dashboard.address + path);
      await page.getByText(permission).first().waitFor();
      await eventuallyEqual(() => page.getByRole("alert").count(), 0, `${path} asks for nothing that is refused`);
    }
  });

  // What is drawn does not depend on the database.
  for (const scheme of store === "sqlite" ? (["light", "dark"] as const) : []) {
    it(`is accessible (${scheme})`, async () => {
      for (const path of ["/workspaces", "/settings"]) {
        const page = await dashboard.visit(path, { scheme });
        await isAccessible(page);
      }
    });
  }
});
