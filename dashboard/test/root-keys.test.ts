import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnEachStore, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, eventuallyPasses, eventuallyWithout } from "./waiting.ts";

describeOnEachStore("root keys, sessions, audit log", (dashboard, store) => {
  it("creates a root key by its task, shows it once, rotates it, and deletes it", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
    const { key } = await dashboard.ok("keys.createKey", { apiId });
    const page = await dashboard.visit("/root-keys");
    await page.getByRole("button", { name: "Create root key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("payments backend");
    await dialog.getByRole("combobox", { name: /APIs/ }).selectOption("Only payments");
    await dialog.getByRole("switch", { name: /^Verify keys/ }).press("Space");
    await dialog.getByRole("button", { name: "Create root key" }).click();
    const secret = (await page.locator("[data-secret]").textContent())!;
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.locator("[data-secret]").waitFor({ state: "detached" });
    await eventuallyWithout(page, secret);
    const [created] = await dashboard.ok("rootKeys.listRootKeys", { search: "payments backend" });
    assert.deepEqual(created.permissions, [`apis.${apiId}.verify_key`]);

    await page.getByRole("row").filter({ hasText: "payments backend" }).click();
    const panel = page.getByRole("complementary", { name: "payments backend" });
    await panel.getByRole("button", { name: "Rotate…" }).click();
    await page.getByRole("button", { name: "Rotate root key" }).click();
    await eventuallyPasses(
      () => page.locator("[data-secret]").textContent(),
      (next) => assert.notEqual(next, secret),
    );
    await page.getByRole("button", { name: "I have stored it" }).click();

    // The old one still works.
    assert.equal((await dashboard.server.call("keys.verifyKey", { key }, secret)).status, 200);
    await panel.getByRole("button", { name: "Disable" }).click();
    await panel.getByRole("button", { name: "Enable" }).waitFor();
    assert.equal((await dashboard.server.call("keys.verifyKey", { key }, secret)).status, 403);
    await panel.getByRole("button", { name: "Delete…" }).click();
    await page.getByLabel("Type payments backend to confirm").fill("payments backend");
    await page.getByRole("button", { name: "Delete root key" }).click();
    await page.getByText("Deleted the root key payments backend.").waitFor();
    const left = await dashboard.ok("rootKeys.listRootKeys", { search: created.rootKeyId });
    assert.deepEqual(left, []);
  });

  it("deletes what a leaked root key created, or says how many live on", async () => {
    const permissions = ["rootKeys.*.create_root_key"];
    const createdBy = async (as: string, name: string) => {
      const { body } = await dashboard.server.call("rootKeys.createRootKey", { name, permissions }, as);
      return body.data;
    };
    const page = await dashboard.visit("/root-keys");
    for (const isAlso of [false, true]) {
      const name = `leaked ${isAlso}`;
      const leaked = await dashboard.ok("rootKeys.createRootKey", { name, permissions });
      const { key } = await createdBy(leaked.key, "first");
      const { rootKeyId } = await createdBy(key, "second");
      await dashboard.ok("keys.reportLeak", { key: leaked.key });
      await page.goto(`${dashboard.address}/root-keys?open=${leaked.rootKeyId}`);
      const panel = page.getByRole("complementary", { name });
      await panel.getByText("Leaked", { exact: true }).first().waitFor();
      await panel.getByRole("button", { name: "Delete…" }).click();
      if (isAlso) await page.getByRole("switch", { name: /^Delete the root keys that it created/ }).press("Space");
      await page.getByLabel(`Type ${name} to confirm`).fill(name);
      await page.getByRole("button", { name: "Delete root key" }).click();
      const text = isAlso ? "Also 2 root keys that it created." : "Of those that it created, 2 root keys still work.";
      await page.getByText(`Deleted the root key ${name}. ${text}`).waitFor();
      const left = await dashboard.ok("rootKeys.listRootKeys", { search: rootKeyId });
      assert.equal(left.length, isAlso ? 0 : 1);
    }
  });

  it("signs another browser out", async () => {
    const other = await dashboard.ok("rootKeys.createRootKey", { name: "of a colleague", permissions: ["*"] });
    const theirs = await dashboard.visit("/apis", { as: other.key });
    const mine = await dashboard.visit("/root-keys");
    const sessions = mine.getByRole("table", { name: "Sessions" });
    await sessions
      .getByRole("row")
      .filter({ hasText: "of a colleague" })
      .getByRole("button", { name: "Sign out…" })
      .click();
    await mine.getByRole("dialog").getByRole("button", { name: "Sign out", exact: true }).click();
    await mine.getByText("The session has ended.").waitFor();
    await theirs.goto(`${dashboard.address}/identities`);
    await theirs.waitForURL((url) => url.pathname === "/sign-in");
  });

  it("shows what a change replaced, and exports the events", async () => {
    const override = { namespace: "login", identifier: "=1+1", duration: 60_000 };
    await dashboard.ok("ratelimits.limit", { ...override, limit: 2 });
    await dashboard.ok("ratelimits.setOverride", { ...override, limit: 100 });
    await dashboard.ok("ratelimits.setOverride", { ...override, limit: 7 });
    const page = await dashboard.visit("/audit?action=ratelimits.setOverride");
    await page.getByRole("row").nth(1).click();
    const panel = page.getByRole("complementary", { name: "ratelimits.setOverride" });
    await panel.getByRole("row").filter({ hasText: "limit" }).getByText("100").waitFor();
    await eventuallyEqual(() => panel.locator("del, ins").allTextContents(), ["100", "7"]);

    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByRole("menuitem", { name: "As JSON" }).click();
    const file = await (await download).createReadStream();
    const events = JSON.parse(Buffer.concat(await file.toArray()).toString());
    assert.deepEqual(
      events.map(({ meta }: { meta: { limit: number } }) => meta.limit),
      [7, 100],
    );
  });

  // What is drawn does not depend on the database.
  for (const scheme of store === "sqlite" ? (["light", "dark"] as const) : []) {
    it(`is accessible (${scheme})`, async () => {
      const [{ rootKeyId }] = await dashboard.ok("rootKeys.listRootKeys", { search: "of a colleague" });
      for (const path of ["/root-keys", `/root-keys?open=${rootKeyId}`, "/audit"]) {
        const page = await dashboard.visit(path, { scheme });
        await page.getByRole("row").nth(1).waitFor();
        await isAccessible(page);
      }
    });
  }
});
