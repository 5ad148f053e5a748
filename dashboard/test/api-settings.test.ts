import assert from "node:assert/strict";
import { before, it } from "node:test";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, fitsWindow, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, eventuallyWithout } from "./waiting.ts";

const SECRET = "Bearer of-the-former-system";

describeDashboard("the settings of an API", (dashboard) => {
  let apiId: string;
  let path: string;
  const get = () => dashboard.ok("apis.getApi", { apiId });

  before(async () => {
    ({ apiId } = await dashboard.ok("apis.createApi", { name: "documents" }));
    path = `/apis/${apiId}/settings`;
  });

  it("says what happens to leaked keys, before an expiry, and whether holders read their keys", async () => {
    const page = await dashboard.visit(path);
    const edit = async (name: string, change: () => Promise<unknown>, sent: string) => {
      await page.getByRole("button", { name: `Edit ${name}` }).click();
      await change();
      await page.getByText(sent).waitFor();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: `Edit ${name}` }).waitFor();
    };
    await page.getByText("key.expiring 7 days, 1 day before the expiry").waitFor();
    const toggle = (name: string) => () => page.getByText(name, { exact: true }).click();
    await edit("the days before the expiry", toggle("30 days"), '"expiryNotices": [30,7,1]');
    await edit(
      "what happens to a reported key",
      () => page.getByLabel("If a key is reported as leaked").selectOption("disable"),
      '"leakAction": "disable"',
    );
    await edit("the access to the own key", toggle("keys.getOwnKey does not find these keys"), '"ownKeyAccess": true');
    const { leakAction, expiryNotices, ownKeyAccess } = await get();
    assert.deepEqual(
      { leakAction, expiryNotices, ownKeyAccess },
      {
        leakAction: "disable",
        expiryNotices: [30, 7, 1],
        ownKeyAccess: true,
      },
    );
    await edit("the days before the expiry", toggle("30 days"), '"expiryNotices": null, which removes it');
    assert.equal((await get()).expiryNotices, undefined);
  });

  it("says what new keys must have, and the overview which keys are older than that", async () => {
    const { keyId } = await dashboard.ok("keys.createKey", { apiId, name: "forever" });
    const page = await dashboard.visit(path);
    const edit = async (change: () => Promise<unknown>, sent: string) => {
      await page.getByRole("button", { name: "Edit the policy" }).click();
      await change();
      await page.getByText(sent).waitFor();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Edit the policy" }).waitFor();
    };
    const usual = page.getByLabel("Expiry of keys that are created without one, in days");
    const max = page.getByLabel("Longest life of a key, in days");
    await edit(async () => {
      await usual.fill("30");
      await max.fill("7");
      await page.getByText("The expiry is later than the longest life.").first().waitFor();
      await max.fill("90");
      await page.getByText("Each key needs a limit, its own or one of its plan or identity").click();
      await page.getByText("Each key has the prefix of the API").click();
    }, '"policy": {"expiry":{"default":2592000000,"max":7776000000},"limitsRequired":true,"prefixFixed":true}');
    await page.getByText("an expiry, at most 90 days after their creation").waitFor();
    await page.getByText("no prefix").waitFor();
    assert.deepEqual((await get()).policy, {
      expiry: { default: 2_592_000_000, max: 7_776_000_000 },
      limitsRequired: true,
      prefixFixed: true,
    });
    await isAccessible(page);
    const overview = await dashboard.visit("/");
    await overview.getByText("1 key of documents against its policy").click();
    await overview.getByText("its expiry, no limit").waitFor();
    await overview.getByRole("link", { name: "The policy of the API" }).click();
    await edit(async () => {
      for (const field of [usual, max]) await field.fill("");
      await page.getByText("Each key needs a limit, its own or one of its plan or identity").click();
      await page.getByText("Each key has the prefix of the API").click();
    }, '"policy": null, which removes it');
    assert.equal((await get()).policy, undefined);
    await dashboard.ok("keys.deleteKey", { keyId });
  });

  it("sets, changes and removes the upstream verifier, whose headers it cannot show", async () => {
    const page = await dashboard.visit(path);
    await page.getByRole("button", { name: "Set a verifier…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Address").fill("https://old.example.com/verify");
    const save = dialog.getByRole("button", { name: "Save verifier" });
    await eventuallyEqual(() => save.getAttribute("aria-disabled"), "true", "a header has no value");
    await dialog.getByLabel("Value of Authorization").fill(SECRET);
    await dialog.getByRole("button", { name: "Copy as curl" }).click();
    await dialog.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.includes("$VALUE") && !copied.includes(SECRET), copied);
    await save.click();
    await page.getByText("Saved the upstream verifier.").waitFor();
    await page.getByText("Status 503: the caller tries again. Known keys are not affected.").waitFor();
    await eventuallyWithout(page, SECRET);
    assert.deepEqual((await get()).upstream, {
      url: "https://old.example.com/verify",
      headers: ["Authorization"],
      timeout: 2_000,
      onOutage: "unavailable",
    });

    await page.getByRole("button", { name: "Change the verifier…" }).click();
    await eventuallyEqual(() => dialog.getByLabel("Value of Authorization").inputValue(), "");
    await dialog.getByRole("button", { name: "Remove the header Authorization" }).click();
    await dialog.getByLabel("Without an answer").selectOption("not_found");
    await save.click();
    await page.getByText("NOT_FOUND, as if the key did not exist. Known keys are not affected.").waitFor();
    assert.deepEqual((await get()).upstream.headers, []);

    await page.getByRole("button", { name: "Remove…" }).click();
    await page.getByRole("button", { name: "Remove verifier" }).click();
    await page.getByRole("button", { name: "Set a verifier…" }).waitFor();
    assert.equal((await get()).upstream, undefined);
  });

  it("reports a leaked key without a trace of its string in the browser", async () => {
    await dashboard.ok("apis.updateApi", { apiId, leakAction: "disable" });
    const { key, keyId } = await dashboard.ok("keys.createKey", { apiId, name: "in a repository", externalId: "acme" });
    const page = await dashboard.visit("/apis?report=true");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Key", { exact: true }).fill(key);
    await dialog.getByLabel("Where it was found").fill("https://example.com/config.js");
    await dialog.getByRole("button", { name: "Report key" }).click();
    await dialog.getByRole("link", { name: "in a repository" }).waitFor();
    await eventuallyWithout(page, key);
    assert.ok(!page.url().includes(key));
    await eventually("the key is disabled", async () => {
      const { leakedAt, enabled } = await dashboard.ok("keys.getKey", { keyId });
      return leakedAt !== undefined && !enabled;
    });
    await dialog.getByRole("link", { name: "in a repository" }).click();
    await page.getByText("Reported as leaked").waitFor();

    await page.goto(`${dashboard.address}/apis?report=true`);
    await dialog.getByLabel("Key", { exact: true }).fill("live_unknown");
    await dialog.getByLabel("Key", { exact: true }).press("Enter");
    await dialog.getByText("no key that your root key may read has this string").waitFor();
  });

  it("shows a report as taken if the key cannot be looked up afterwards", async () => {
    const { key, keyId } = await dashboard.ok("keys.createKey", { apiId });
    const page = await dashboard.visit("/apis?report=true");
    await page.route("**/v2/keys.whoami", (route) => route.abort());
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Key", { exact: true }).fill(key);
    await dialog.getByRole("button", { name: "Report key" }).click();
    await dialog.getByText("The report was taken.").waitFor();
    await dialog.getByText("Which key it is could not be read:").waitFor();
    await dialog.getByText(/^The service at http:\S+ cannot be reached:/).waitFor();
    await eventuallyEqual(() => dialog.getByRole("button", { name: "Report key" }).count(), 0);
    await eventually("the key is marked", async () => {
      const { leakedAt } = await dashboard.ok("keys.getKey", { keyId });
      return leakedAt !== undefined;
    });
  });

  it("creates a session of the portal with its limits, shows its address once, and ends it", async () => {
    const page = await dashboard.visit(path);
    await page.getByText("No owner has one now.").waitFor();
    await page.getByRole("button", { name: "Create session…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Owner").fill("globex");
    await dialog.getByText("Delete keys", { exact: true }).click();
    await dialog.getByLabel("The session ends after").selectOption({ label: "5 minutes" });
    await dialog.getByText("Limits on the keys").click();
    await dialog.getByLabel("Keys at most").fill("2");
    await dialog.getByText("Brand and language").click();
    await dialog.getByLabel("Your name").fill("Acme");
    await dialog.getByLabel("Color of buttons and links").fill("blue");
    await dialog.getByText("The color has the form #246bce.").waitFor();
    await dialog.getByLabel("Color of buttons and links").fill("#246bce");
    await dialog.getByLabel("Language").selectOption({ label: "Deutsch" });
    await dialog.getByRole("button", { name: "Create session" }).click();
    const address = await dialog.locator("[data-secret]").textContent();
    const opened = page.waitForEvent("popup");
    await dialog.getByRole("link", { name: "Open the portal" }).click();
    const portal = await opened;
    await portal.getByRole("heading", { name: "API-Schlüssel", exact: true }).waitFor();
    await eventuallyEqual(() => portal.title(), "Acme · API-Schlüssel");

    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByText("list, usage, create, reroll, rename", { exact: true }).waitFor();
    await eventuallyWithout(page, address!);
    const [session] = await dashboard.ok("portal.listPortalSessions", { apiId });
    assert.ok(session.expiresAt - session.createdAt === 300_000, JSON.stringify(session));
    await page.getByRole("button", { name: "End the session of globex" }).click();
    await page.getByRole("button", { name: "End session", exact: true }).click();
    await page.getByText("No owner has one now.").waitFor();
    assert.deepEqual(await dashboard.ok("portal.listPortalSessions", { apiId }), []);
  });

  it("gives what finds leaked keys to each scanner, for the prefixes in the address", async () => {
    const page = await dashboard.visit(`${path}?prefixes=live`);
    const { kits } = await dashboard.ok("apis.getLeakKit", { apiId, prefixes: ["live", "test"] });
    await page.getByText(kits[0].regex).waitFor();
    await page.getByLabel("Prefixes").fill("test ");
    await page.getByText(kits[1].regex).waitFor();
    await page.getByRole("button", { name: "gitleaks", exact: true }).click();
    await page.getByRole("button", { name: "Copy for test_" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await eventuallyEqual(() => page.evaluate(() => navigator.clipboard.readText()), kits[1].gitleaks.trimEnd());
    await page.waitForURL(
      (url) =>
        url.search === "?prefixes=live+test&format=gitleaks" || url.search === "?prefixes=live%20test&format=gitleaks",
    );
    await page.getByRole("button", { name: "TruffleHog" }).click();
    await page.getByText("The service does not know its address").waitFor();
    await page.getByRole("button", { name: "GitHub" }).click();
    await page.getByText(`Sample: ${kits[0].github.sample}`).waitFor();
  });

  it("says which permission is missing", async () => {
    const permissions = ["apis.*.read_api", "apis.*.read_key", "apis.*.create_portal_session"];
    const { key } = await dashboard.ok("rootKeys.createRootKey", { name: "reader", permissions });
    const page = await dashboard.visit(path, { as: key });
    const edit = page.getByRole("button", { name: "Edit the name" });
    await edit.waitFor();
    await eventuallyEqual(() => edit.getAttribute("aria-disabled"), "true");
    await page.getByText(`apis.${apiId}.read_portal_session`).waitFor();
    await page.getByRole("button", { name: "Create session…" }).click();
    await page.getByText(`The root key lacks the permission apis.${apiId}.delete_key`).waitFor();
    await eventuallyEqual(() => page.getByRole("switch", { name: "See the keys" }).isChecked(), true);
    await eventuallyEqual(() => page.getByRole("switch", { name: "Delete keys" }).isChecked(), false);
    await page.getByText("The root key lacks the permission budgets.*.read_budget").waitFor();
  });

  it("lets owners see what is left of budgets only if it is chosen", async () => {
    const page = await dashboard.visit(path);
    await page.getByRole("button", { name: "the portal…" }).click();
    const dialog = page.getByRole("dialog");
    const left = dialog.getByRole("switch", { name: "See what is left of their credits and budgets" });
    await left.waitFor();
    await eventuallyEqual(() => left.isChecked(), false);
    await dialog.getByText("See what is left of their credits and budgets", { exact: true }).click();
    await dialog.getByRole("button", { name: "Save" }).click();
    await eventually("the setting", async () => {
      const { portal } = await dashboard.ok("apis.getApi", { apiId });
      return portal?.actions?.includes("left") === true;
    });
  });

  it("has accessible dialogs, 375 pixels wide", async () => {
    const page = await dashboard.visit(path, { width: 375, height: 812 });
    for (const name of ["Set a verifier…", "Report a leaked key…", "Create session…"]) {
      await page.getByRole("button", { name }).click();
      await page.getByRole("dialog").waitFor();
      for (const fold of await page.locator("details > summary").all()) await fold.click();
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await isAccessible(page);
      }
      await fitsWindow(page);
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
  });
});
