import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, it } from "node:test";
import { eventually, ROOT_KEY, run } from "../../server/test/process.ts";
import { describeOnEachStore, fitsWindow, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, eventuallyPasses, eventuallyWithout, pressIn } from "./waiting.ts";

const HOSTILE = "<img src=x onerror=alert(1)>";

describeOnEachStore("keys", (dashboard, store) => {
  let apiId: string;

  before(async () => {
    ({ apiId } = await dashboard.ok("apis.createApi", { name: "payments" }));
    await dashboard.ok("permissions.createRole", { name: "reader", permissions: ["documents.read"] });
    for (let index = 0; index < 140; index++) {
      await dashboard.ok("keys.createKey", {
        apiId,
        prefix: index % 2 ? "live" : "test",
        name: `key ${index}`,
        externalId: index % 3 ? "acme" : "globex",
        ...(index % 10 === 0 && { roles: ["reader"] }),
      });
    }
  });

  it("creates a key from a preset, shows its secret once, and verifies it", async () => {
    const page = await dashboard.visit(`/apis/${apiId}`);
    await page.getByRole("button", { name: "Create key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: /^Trial/ }).click();
    await dialog.getByLabel("Name", { exact: true }).fill("Acme trial");
    await dialog.getByLabel("Owner").fill("acme");
    await dialog.getByRole("button", { name: "Limit calls at once" }).click();
    await dialog.getByLabel("Calls at once", { exact: true }).fill("0");
    await dialog.getByText("calls: The least is 1.").waitFor();
    await dialog.getByLabel("Calls at once", { exact: true }).fill("4");
    await dialog.getByRole("button", { name: "Show the call" }).click();
    const call = JSON.parse((await dialog.locator("pre").textContent()) ?? "");
    assert.equal(call.name, "Acme trial");
    assert.equal(call.credits.remaining, 1_000);
    await dialog.getByRole("button", { name: "Create key" }).click();

    const secret = await page.locator("[data-secret]").textContent();
    assert.match(secret ?? "", /^trial_/);
    await page.getByRole("button", { name: "Copy key" }).click();
    await eventuallyEqual(() => page.evaluate(() => navigator.clipboard.readText()), secret!);
    await page.getByRole("button", { name: "Verify it now" }).click();
    await page.getByText("VALID", { exact: true }).waitFor();
    // Escape must not lose the secret.
    await pressIn(page.getByRole("dialog"), "Escape");
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });

    await eventuallyWithout(page, secret!);
    assert.ok(!page.url().includes(secret!));
    const [created] = await dashboard.ok("apis.listKeys", { apiId, order: "desc", limit: 1 });
    assert.equal(created.name, "Acme trial");
    assert.equal(created.credits.remaining, 1_000, "the verification charged nothing");
    assert.equal(created.ratelimits[0].limit, 30);
    assert.deepEqual(created.concurrency, [{ name: "calls", limit: 4 }]);
  });

  it("keeps the prefix of the API, which its leak kit looks for, with every preset", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "with a prefix" });
    await dashboard.ok("apis.updateApi", { apiId, prefix: "pay_live" });
    const page = await dashboard.visit(`/apis/${apiId}`);
    await page.getByRole("button", { name: "Create key" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Access", { exact: true }).click();
    await dialog.getByLabel("Permissions").fill("documents.read,");
    for (const preset of [/^Live/, /^Test/, /^Trial/, /^Paid/]) {
      await dialog.getByRole("button", { name: preset }).click();
      await eventuallyEqual(() => dialog.getByLabel("Prefix").inputValue(), "pay_live", String(preset));
      await dialog.getByText("documents.read", { exact: true }).waitFor();
    }
    await dialog.getByLabel("Prefix").fill("other");
    await dialog.getByText("its leak kit does not find keys with another one").waitFor();
    await dialog.getByRole("button", { name: /^Test/ }).click();
    await eventuallyEqual(() => dialog.getByLabel("Prefix").inputValue(), "other");
  });

  it("sends the form by Enter, with its buttons in view, and keeps it after a click beside it", async () => {
    const page = await dashboard.visit(`/apis/${apiId}`);
    await page.getByRole("button", { name: "Create key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: /^Trial/ }).click();
    const send = dialog.getByRole("button", { name: "Create key" });
    await eventuallyPasses(
      () => send.boundingBox(),
      (box) => assert.ok(box && box.y + box.height <= 900, `The button ends below 900 pixels: ${JSON.stringify(box)}`),
    );
    await dialog.getByLabel("Name", { exact: true }).fill("by Enter");

    await page.mouse.click(20, 600);
    await eventuallyEqual(() => dialog.getByLabel("Name", { exact: true }).inputValue(), "by Enter");
    // The click took the focus for a frame; a key that comes before the dialog has it back goes to the page.
    await pressIn(dialog, "Escape");
    await dialog.getByText("Discard what you entered?").waitFor();
    await dialog.getByRole("button", { name: "Keep editing" }).click();

    await dialog.getByLabel("Name", { exact: true }).press("Enter");
    await page.getByRole("dialog", { name: "Key created" }).waitFor();
    const [created] = await dashboard.ok("apis.listKeys", { apiId, order: "desc", limit: 1 });
    assert.equal(created.name, "by Enter");
  });

  it("shows names as text", async () => {
    await dashboard.ok("keys.createKey", { apiId, name: HOSTILE, externalId: "hostile" });
    const page = await dashboard.visit(`/apis/${apiId}?owner=hostile`);
    await page.getByRole("link", { name: HOSTILE }).waitFor();
    await eventuallyEqual(() => page.locator("main img").count(), 0);
    await page.getByRole("link", { name: HOSTILE }).click();
    await page.getByRole("heading", { name: HOSTILE }).waitFor();
    await eventuallyEqual(() => page.locator("main img").count(), 0);
    await eventuallyEqual(() => page.title(), `${HOSTILE} · Latchkey`);
  });

  it("searches and filters, and keeps it in the address", async () => {
    const page = await dashboard.visit(`/apis/${apiId}`);
    await page.getByRole("searchbox", { name: "Search keys" }).fill("key 77");
    await page.waitForURL(/q=key/);
    await page.getByRole("row").filter({ hasText: "key 77" }).waitFor();
    await page.getByText(/^1 of \d+ keys/).waitFor();
    await page.getByRole("button", { name: "Clear the search" }).click();
    await page.getByRole("button", { name: "Role", exact: true }).click();
    await page.getByRole("menuitem", { name: "reader" }).click();
    await page.waitForURL(/role=reader/);
    await page.getByText(/^14 of \d+ keys/).waitFor();
    await page.reload();
    await page.getByText(/^14 of \d+ keys/).waitFor();
    await page.goBack();
    await page.getByText(/^\d+ keys/).waitFor();
  });

  it("finds a pasted key without showing it in the address", async () => {
    const { keyId, key } = await dashboard.ok("keys.createKey", { apiId, name: "pasted", prefix: "live" });
    const page = await dashboard.visit(`/apis/${apiId}`);
    const addresses: string[] = [];
    page.on("request", (request) => addresses.push(request.url()));
    await page.evaluate((text) => navigator.clipboard.writeText(text), key);
    await page.getByRole("searchbox", { name: "Search keys" }).press("ControlOrMeta+V");
    await page.waitForURL((url) => url.searchParams.get("key") === keyId);
    await page.getByRole("complementary", { name: "pasted" }).waitFor();
    assert.ok(addresses.every((address) => !address.includes(key)));
    await eventuallyEqual(() => page.getByRole("searchbox", { name: "Search keys" }).inputValue(), "");
  });

  it("finds the keys of a pasted owner whose id has the form of a key", async () => {
    const externalId = "0b9f4c1e-5d2a-4f7e-9c3b-8a6d1e2f3a4b";
    await dashboard.ok("keys.createKey", { apiId, name: "of a long owner", externalId });
    const page = await dashboard.visit(`/apis/${apiId}`);
    await page.evaluate((text) => navigator.clipboard.writeText(text), externalId);
    await page.getByRole("searchbox", { name: "Search keys" }).press("ControlOrMeta+V");
    await page.waitForURL((url) => url.searchParams.get("owner") === externalId);
    await page.getByRole("row", { name: /of a long owner/ }).waitFor();
  });

  it("opens rows beside the table, by keyboard", async () => {
    const page = await dashboard.visit(`/apis/${apiId}?order=asc`);
    await page.locator('[data-index="0"]').press("ArrowDown");
    await pressIn(page.locator('[data-index="1"]'), "Enter");
    await page.getByRole("complementary", { name: "key 1" }).waitFor();
    await page.getByRole("button", { name: "Next row" }).click();
    await page.getByRole("complementary", { name: "key 2" }).waitFor();
    // Not in the button: one that a script focuses shows its tooltip, and Escape closes that first.
    await pressIn(page.locator("body"), "Escape");
    await page.getByRole("complementary", { name: "key 2" }).waitFor({ state: "detached" });
    assert.ok(!page.url().includes("key="));
  });

  it("loads more keys while one scrolls", async () => {
    const page = await dashboard.visit(`/apis/${apiId}?order=asc`);
    await page.getByRole("row").filter({ hasText: "key 3" }).first().waitFor();
    const rendered = await page.getByRole("row").count();
    assert.ok(rendered < 80, `only the rows in the window are rendered, not ${rendered}`);
    await page.mouse.move(700, 600);
    while ((await page.getByRole("row").filter({ hasText: "key 139" }).count()) === 0) await page.mouse.wheel(0, 2_000);
  });

  it("disables many keys, and takes it back", async () => {
    const page = await dashboard.visit(`/apis/${apiId}?q=key%201&order=asc`);
    for (const index of [0, 1, 2]) await page.locator(`[data-index="${index}"] label`).first().click();
    const bar = page.getByRole("toolbar", { name: "Selected rows" });
    await bar.getByText("3 selected").waitFor();
    await bar.getByRole("button", { name: "Disable" }).click();
    await page.getByText("3 keys disabled.").waitFor();
    const count = async () => (await dashboard.ok("apis.countKeys", { apiId, state: "disabled" })).count;
    assert.equal(await count(), 3);
    const row = (index: number) => page.locator(`[data-index="${index}"]`);
    await row(0).getByText("Disabled").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    for (const index of [0, 1, 2]) await row(index).getByText("Active").waitFor();
    assert.equal(await count(), 0);
  });

  // Where the window is does not depend on the database.
  if (store === "sqlite") {
    it("stays at its place in a long list after a change", async () => {
      const { apiId: long } = await dashboard.ok("apis.createApi", { name: "long" });
      const hashes = Array.from({ length: 1_250 }, (_, index) => createHash("sha256").update(`${index}`).digest("hex"));
      const keys = hashes.map((hash) => ({ hash }));
      await dashboard.ok("keys.migrateKeys", { apiId: long, migrationId: "long", algorithm: "sha256", keys });
      const page = await dashboard.visit(`/apis/${long}`);
      const row = page.locator('[data-index="1240"]');
      await eventually("the end of the list", async () => {
        await page.mouse.wheel(0, 20_000);
        return (await row.count()) > 0;
      });
      await row.locator("label").first().click();
      const place = await page.evaluate(() => scrollY);
      await page.getByRole("toolbar", { name: "Selected rows" }).getByRole("button", { name: "Disable" }).click();
      await page.getByText("1 key disabled.").waitFor();
      await row.getByText("Disabled").waitFor();
      await eventuallyEqual(() => page.evaluate(() => scrollY), place);
    });
  }

  it("deletes many keys after the number was typed", async () => {
    await dashboard.ok("keys.createKey", { apiId, name: "obsolete 1" });
    await dashboard.ok("keys.createKey", { apiId, name: "obsolete 2" });
    const page = await dashboard.visit(`/apis/${apiId}?q=obsolete`);
    await page
      .getByText("Select all that are loaded")
      .or(page.getByLabel("Select all that are loaded"))
      .first()
      .waitFor({ state: "attached" });
    await page.locator('[role="columnheader"] label').click();
    await page.getByRole("button", { name: "Delete…" }).click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Delete 2 keys" });
    await eventuallyEqual(() => confirm.getAttribute("aria-disabled"), "true");
    await page.getByLabel("Type 2 to confirm").fill("2");
    await confirm.click();
    await page.getByText("2 keys deleted.").waitFor();
    await page.getByText("No key matches these filters").waitFor();
  });

  it("exports what the filters find", async () => {
    const page = await dashboard.visit(`/apis/${apiId}?role=reader`);
    await page.getByText(/^14 of/).waitFor();
    await page.getByRole("button", { name: "More", exact: true }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "Export these keys as CSV" }).click(),
    ]);
    const lines = readFileSync(await download.path(), "utf8")
      .trim()
      .split("\r\n");
    assert.equal(lines.length, 15);
    assert.match(lines[0]!, /^keyId,name,start,owner/);
  });

  it("imports a file after a dry run, without sending a key", async () => {
    const page = await dashboard.visit(`/apis/${apiId}?q=imported`);
    const bodies: string[] = [];
    page.on("request", (request) => bodies.push(request.postData() ?? ""));
    await page.getByRole("button", { name: "Import…" }).click();
    await page
      .getByLabel("Or paste")
      .fill(
        "key,name,owner,meta.plan,credits.remaining,ratelimits\n" +
          'old_secret_one,"imported, 1",acme,pro,10,"[{""name"":""requests"",""limit"":5,""duration"":60000,""mode"":""strict""}]"\n' +
          "old_secret_two,imported 2,,,,\n,no key,,,,\n",
      );
    await page.getByRole("button", { name: "Check them" }).click();
    await page.getByText("2 keys can be imported, 1 row cannot.").waitFor();
    await page.getByText("Row 3: It has neither a key nor a hash.").waitFor();
    await page.getByRole("button", { name: "Import 2 keys" }).click();
    await page.getByText("2 keys imported.").waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("link", { name: "imported, 1" }).waitFor();
    assert.ok(bodies.every((body) => !body.includes("old_secret")));
    assert.equal((await dashboard.ok("keys.verifyKey", { key: "old_secret_one" })).code, "VALID");
    const { meta, credits, ratelimits } = await dashboard.ok("keys.whoami", { key: "old_secret_one" });
    assert.deepEqual([meta, credits.remaining, ratelimits[0].mode], [{ plan: "pro" }, 9, "strict"]);
  });

  it("says why the service stopped in the middle of an import, and not that its other keys exist", async () => {
    const policed = await dashboard.ok("apis.createApi", { name: "policed" });
    await dashboard.ok("apis.updateApi", { apiId: policed.apiId, policy: { expiry: { max: 86_400_000 } } });
    const page = await dashboard.visit(`/apis/${policed.apiId}`);
    await page.getByRole("button", { name: "Import…" }).click();
    // So many permissions that several transactions store the keys.
    const permissions = Array.from({ length: 10 }, (_, i) => `documents.read${i}`);
    const rows = Array.from({ length: 200 }, (_, i) => {
      const expires = Date.now() + (i === 199 ? 2 : 0.5) * 86_400_000;
      return { key: `stopped_${i}`, name: `stopped ${i}`, permissions, expires: Math.round(expires) };
    });
    await page.getByLabel("Or paste").fill(JSON.stringify(rows));
    await page.getByRole("button", { name: "Check them" }).click();
    await page.getByRole("button", { name: "Import 200 keys" }).click();
    await page.getByText(/^[1-9]\d+ keys imported\.$/).waitFor();
    const reason = page.getByRole("alert");
    await reason.getByText(/at most 86400000 milliseconds/).waitFor();
    await eventuallyEqual(() => page.getByText("exist already").count(), 0);
  });

  // What is drawn, and the commands, do not depend on the database.
  if (store !== "sqlite") return;

  it("shows what the root key may not do as disabled, with the permission", async () => {
    const { key } = await dashboard.ok("rootKeys.createRootKey", {
      name: "reader",
      permissions: ["apis.*.read_api", "apis.*.read_key"],
    });
    const page = await dashboard.visit(`/apis/${apiId}`, { as: key });
    const create = page.getByRole("button", { name: "Create key" });
    await create.waitFor();
    await eventuallyEqual(() => create.getAttribute("aria-disabled"), "true");
    await create.focus();
    await create.hover();
    await page.getByText(`The root key lacks the permission apis.${apiId}.create_key`).waitFor();
    await create.click({ force: true });
    await eventuallyEqual(() => page.getByRole("dialog").count(), 0);
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const page = await dashboard.visit(`/apis/${apiId}`, { scheme });
      await isAccessible(page);
      await page.locator('[data-index="1"]').press("Enter");
      await page.getByRole("complementary").waitFor();
      await isAccessible(page);
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").waitFor();
      await isAccessible(page);
    });
  }

  it("works 375 pixels wide", async () => {
    const page = await dashboard.visit(`/apis/${apiId}`, { width: 375, height: 800 });
    await isAccessible(page);
    await fitsWindow(page);
    await page.getByRole("button", { name: "Open the places" }).click();
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "APIs" }).click();
    await page.getByRole("heading", { name: "APIs", exact: true }).waitFor();
  });

  it("gives the commands that import the keys of another system", async () => {
    const page = await dashboard.visit(`/apis/${apiId}`);
    await page.getByRole("button", { name: "Import…" }).click();
    await page.getByLabel("Where the keys come from").selectOption({ label: "Kong, key-auth" });
    await page.getByRole("button", { name: /^Copy: Import/ }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const [login, command] = (await page.evaluate(() => navigator.clipboard.readText())).split(/\n(?=latchkey)/);
    assert.equal(login, `latchkey login ${dashboard.address}`);
    const directory = mkdtempSync(join(tmpdir(), "latchkey-import-"));
    try {
      const key = "IkVd1WBEXv6K8ZQf3mYpT0nRs7uLaGcH";
      const consumers = [{ username: "acme", keyauth_credentials: [{ key }] }];
      // JSON is YAML too.
      writeFileSync(join(directory, "kong.yaml"), JSON.stringify({ _format_version: "3.0", consumers }));
      const [, ...args] = command!.replaceAll("\\\n", "").split(/\s+/);
      const { code, output } = await run(args, { directory, settings: { ROOT_KEY } });
      assert.equal(code, 0, output);
      assert.equal((await dashboard.ok("keys.verifyKey", { key })).identity.externalId, "acme");
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
