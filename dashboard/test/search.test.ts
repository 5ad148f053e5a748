/** Everything is found with Ctrl K. */
import assert from "node:assert/strict";
import { before, it } from "node:test";
import { describeOnEachStore, isAccessible } from "./dashboard.ts";
import { enterResult, eventuallyMatch, eventuallyWithout, openPalette, pressIn } from "./waiting.ts";

describeOnEachStore("the search of everything", (dashboard) => {
  let apiId: string;
  let key: { keyId: string; key: string };
  let ids: Record<string, string>;

  before(async () => {
    const { ok } = { ok: (name: string, body: object) => dashboard.ok(name, body) };
    ({ apiId } = await ok("apis.createApi", { name: "Transfers" }));
    await ok("permissions.createRole", { name: "auditor of transfers", permissions: ["transfers.read"] });
    key = await ok("keys.createKey", { apiId, name: "Production", externalId: "bank-of-acme", prefix: "pay_live" });
    await ok("keys.createKey", { apiId, name: "Staging", externalId: "bank-of-acme" });
    // The exact one is the oldest and would be on the second page of the list.
    for (let index = 0; index < 105; index++) {
      await ok("identities.createIdentity", { externalId: `before-shop-${index}` });
    }
    const { identityId } = await ok("identities.createIdentity", { externalId: "shop" });
    await ok("ratelimits.limit", { namespace: "sign-ups", identifier: "a", limit: 1, duration: 60_000 });
    const [namespace] = await ok("ratelimits.listNamespaces", {});
    const { webhookId } = await ok("webhooks.createWebhook", {
      endpoint: "https://billing.example/hook",
      name: "Billing",
    });
    const { rootKeyId } = await ok("rootKeys.createRootKey", { name: "deployer", permissions: ["apis.*.read_api"] });
    ids = { identity: identityId, namespace: namespace.id, webhook: webhookId, rootKey: rootKeyId };
  });

  it("finds a key by words of its name, owner and API in any order, and opens it by keyboard alone", async () => {
    const page = await dashboard.visit("/settings");
    const results = await openPalette(page, "bank prod transf");
    const option = results.getByRole("menuitem", { name: /^Production/ });
    await option.waitFor();
    await eventuallyMatch(() => option.textContent(), /bank-of-acme · pay_live_\w+ · Transfers/);
    await enterResult(option);
    await page.waitForURL((url) => url.pathname === `/apis/${apiId}/keys/${key.keyId}`);
    await page.getByRole("heading", { name: "Production" }).waitFor();
  });

  it("opens the result of a pasted text with Enter", async () => {
    const page = await dashboard.visit("/settings");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.evaluate(() => navigator.clipboard.writeText("bill"));
    const results = await openPalette(page, "");
    await pressIn(page.getByRole("textbox", { name: "Search" }), "Control+v");
    await enterResult(results.getByRole("menuitem", { name: /^Billing/ }));
    await page.waitForURL((url) => url.pathname === `/webhooks/${ids.webhook}`);
  });

  it("finds each kind of object by its id and by its name", async () => {
    const page = await dashboard.visit("/settings");
    const expected: [query: string, label: RegExp, path: string][] = [
      [key.keyId, /^Production/, `/apis/${apiId}/keys/${key.keyId}`],
      [ids.identity!, /^shop/, `/identities/${ids.identity}`],
      ["sign-ups", /^sign-ups/, `/ratelimits/${ids.namespace}`],
      ["bill", /^Billing/, `/webhooks/${ids.webhook}`],
      ["deploy", /^deployer/, `/root-keys?open=${ids.rootKey}`],
      ["auditor", /^auditor of transfers/, "/roles?q=auditor+of+transfers"],
    ];
    for (const [query, label, path] of expected) {
      const results = await openPalette(page, query);
      await results.getByRole("menuitem", { name: label }).click();
      await page.waitForURL((url) => decodeURIComponent(url.pathname + url.search).replaceAll("%20", "+") === path);
    }
  });

  it("finds a pasted key, whose string stays out of the address and of the page", async () => {
    const page = await dashboard.visit("/settings");
    const results = await openPalette(page, key.key);
    await enterResult(results.getByRole("menuitem", { name: /^Production/ }));
    await page.waitForURL((url) => url.pathname === `/apis/${apiId}/keys/${key.keyId}`);
    assert.ok(!page.url().includes(key.key));
    await eventuallyWithout(page, key.key);
  });

  it("runs commands: creates a key in an API", async () => {
    const page = await dashboard.visit("/settings");
    const results = await openPalette(page, "create key");
    await enterResult(results.getByRole("menuitem", { name: /^Create key in Transfers/ }));
    await page.getByRole("dialog", { name: "Create key" }).waitFor();
    await pressIn(page.getByRole("dialog"), "Escape");
    await page.waitForURL((url) => url.pathname === `/apis/${apiId}` && url.search === "");
  });

  it("says that nothing matches", async () => {
    const page = await dashboard.visit("/settings");
    await openPalette(page, "nothing of this kind");
    await page.getByText("Nothing matches “nothing of this kind”.").waitFor();
    await isAccessible(page);
  });

  it("shows the identity that is named exactly first", async () => {
    const page = await dashboard.visit("/identities?q=shop");
    const first = page.getByRole("row").nth(1);
    await first.filter({ hasText: ids.identity! }).waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const page = await dashboard.visit("/settings", { scheme });
      const results = await openPalette(page, "transfers");
      await results.getByRole("menuitem", { name: /^auditor/ }).waitFor();
      await isAccessible(page);
    });
  }
});
