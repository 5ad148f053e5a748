import assert from "node:assert/strict";
import { before, it } from "node:test";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, isAccessible, reveal, settled } from "./dashboard.ts";
import { eventuallyEqual, eventuallyMatch } from "./waiting.ts";

describeDashboard("the page of a key", (dashboard) => {
  let apiId: string;

  before(async () => {
    ({ apiId } = await dashboard.ok("apis.createApi", { name: "payments" }));
    await dashboard.ok("permissions.createRole", { name: "reader", permissions: ["documents.read"] });
  });

  async function makeKey(members: object = {}) {
    const { keyId, key } = await dashboard.ok("keys.createKey", { apiId, name: "before", ...members });
    const get = () => dashboard.ok("keys.getKey", { keyId });
    return { keyId, key, get, path: `/apis/${apiId}/keys/${keyId}` };
  }

  it("edits in place, and says what is sent: a value, null, or nothing", async () => {
    const { get, path } = await makeKey({ externalId: "acme" });
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Edit the name" }).click();
    await page.getByText("It is what it was: nothing is sent.").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("after");
    await page.getByText('"name": "after"').waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: /^after/ }).waitFor();
    await page.getByRole("button", { name: "Edit the name" }).waitFor();
    assert.equal((await get()).name, "after");

    await page.getByRole("button", { name: "Edit the owner" }).click();
    await page.getByLabel("Owner", { exact: true }).fill("");
    await page.getByText('"externalId": null').waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the owner" }).waitFor();
    const key = await get();
    assert.equal(key.identity, undefined);
    assert.equal(key.name, "after");
  });

  it("shows an error of the service with what to do", async () => {
    const { path } = await makeKey();
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Edit the roles" }).click();
    await page.getByLabel("Roles", { exact: true }).fill("no-such-role ");
    await page.getByText('"roles": ["no-such-role"]').waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText("Role not found").waitFor();
    await alert.getByText(/^req_/).waitFor();
  });

  it("says whence each permission comes, and changes the direct ones only", async () => {
    const { get, path } = await makeKey({ roles: ["reader"], permissions: ["billing.view"] });
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByText("from the role reader").waitFor();
    await page.getByRole("button", { name: "Edit the direct permissions" }).click();
    await page.getByRole("button", { name: "Remove billing.view" }).click();
    await page.getByLabel("Direct permissions", { exact: true }).fill("invoices.write");
    await page.getByLabel("Direct permissions", { exact: true }).press("Enter");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("listitem").filter({ hasText: "invoices.write" }).getByText("direct").waitFor();
    assert.deepEqual((await get()).permissions.sort(), ["documents.read", "invoices.write"]);
  });

  it("does not become shorter while what is scrolled to is loaded, which would move what the pointer is on", async () => {
    const { path } = await makeKey();
    const page = await dashboard.visit(path);
    await settled(page);
    const heights = await page.evaluateHandle(() => {
      const seen: number[] = [];
      new ResizeObserver(() => seen.push(document.documentElement.scrollHeight)).observe(document.body);
      return seen;
    });
    await page.getByRole("heading", { name: "Code", exact: true }).scrollIntoViewIfNeeded();
    await page.getByText("keys.createKey").waitFor();
    await settled(page);
    const seen = await heights.jsonValue();
    assert.ok(seen.length > 1, "Nothing was loaded");
    assert.equal(Math.min(...seen), seen[0], `The heights were ${seen}`);
  });

  it("gives credits with a refill by the calendar of a time zone, which keeps what is left", async () => {
    const { get, path } = await makeKey();
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Edit the credits" }).click();
    await page.getByText("A balance of credits").click();
    const interval = page.getByRole("combobox", { name: /^Refill/ });
    await interval.selectOption("Hourly");
    await eventuallyEqual(() => page.getByLabel("Time zone").count(), 0);
    await interval.selectOption("Yearly");
    await page.getByLabel("Refill amount").fill("800");
    await page.getByRole("combobox", { name: /Month/ }).selectOption("February");
    await page.getByLabel("Day of the month").fill("29");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await page.getByLabel("Keep at most").fill("50");
    await page.getByRole("button", { name: "Save" }).click();
    const words = "Yearly on February 29 (Europe/Berlin) it is raised by 800; at most 50 of what is left is kept.";
    await page.getByText(words).waitFor();
    const refill = { amount: 800, refillDay: 29, timeZone: "Europe/Berlin", rollover: 50 };
    assert.deepEqual((await get()).credits.refill, { ...refill, interval: "yearly", refillMonth: 2 });
    await page.getByRole("button", { name: "Edit the credits" }).click();
    await interval.selectOption("Weekly");
    await page.getByRole("combobox", { name: /Day of the week/ }).selectOption("Sunday");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Weekly on Sunday (Europe/Berlin)").waitFor();
    assert.deepEqual((await get()).credits.refill, { ...refill, interval: "weekly", refillDay: 7 });
  });

  it("gives credits with a refill, adds to them, and takes that back", async () => {
    const { get, path } = await makeKey();
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Edit the credits" }).click();
    await page.getByText("A balance of credits").click();
    await page.getByLabel("Remaining credits").fill("500");
    await page.getByRole("combobox", { name: /Refill/ }).selectOption("Monthly");
    await page.getByLabel("Refill amount").fill("800");
    await page.getByLabel("Day of the month").fill("31");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Monthly on day 31 it is set to 800.").waitFor();
    assert.deepEqual((await get()).credits, {
      remaining: 500,
      refill: { interval: "monthly", amount: 800, refillDay: 31 },
    });
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("Added 1,000 credits.").waitFor();
    await page.getByText("1,500 remain", { exact: true }).waitFor();
    assert.equal((await get()).credits.remaining, 1_500);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("500 remain", { exact: true }).waitFor();
    assert.equal((await get()).credits.remaining, 500);
    const history = page.getByRole("table", { name: "History of the credits" });
    await history.getByText("Decrement").waitFor();
    const cells = await history
      .getByRole("row")
      .evaluateAll((rows) =>
        rows.slice(1).map((row) => [...row.querySelectorAll("td")].slice(1).map(({ textContent }) => textContent)),
      );
    assert.deepEqual(cells, [
      ["Decrement", "−1,000", "500"],
      ["Increment", "+1,000", "1,500"],
      ["Set with the key", "", "500"],
    ]);
    await page.getByLabel("Credits", { exact: true }).fill("120");
    await page.getByRole("button", { name: "Take", exact: true }).click();
    await page.getByText("380 remain", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Set", exact: true }).click();
    await page.getByText("120 remain", { exact: true }).waitFor();
    assert.equal((await get()).credits.remaining, 120);
  });

  it("sets limits, and shows their current windows", async () => {
    const { key, get, path } = await makeKey({ recoverable: true });
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Edit the limits" }).click();
    await page.getByRole("button", { name: "Add limit" }).click();
    await page.getByLabel("At most").fill("5");
    await page.getByText("Never more than the limit in any trailing window").click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("5 per minute, strict").waitFor();
    assert.deepEqual(
      (await get()).ratelimits.map(({ name, limit, duration, mode }: never) => [name, limit, duration, mode]),
      [["requests", 5, 60_000, "strict"]],
    );
    await dashboard.ok("keys.verifyKey", { key });
    await page.getByRole("button", { name: "Read them" }).click();
    await page.getByText(/requests: 1 of 5 in 1 minute, strict/).waitFor();
  });

  it("limits how many calls run at once", async () => {
    const { key, get, path } = await makeKey();
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Edit how many calls run at once" }).click();
    const add = page.getByRole("button", { name: "Limit calls at once" });
    await add.click();
    await add.click();
    await page.getByRole("button", { name: "Remove the limit calls", exact: true }).click();
    await add.click();
    await page.getByText('[{"name":"calls-2","limit":10},{"name":"calls","limit":10}]').waitFor();
    await page.getByRole("button", { name: "Remove the limit calls-2" }).click();
    await page.getByLabel("Calls at once", { exact: true }).fill("3");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("0 of 3 at once").waitFor();
    await isAccessible(page);
    await eventuallyEqual(async () => (await get()).concurrency, [{ name: "calls", limit: 3, inUse: 0 }]);
    const box = page.getByRole("region", { name: "Verify a key" });
    await box.getByLabel("Key", { exact: true }).fill(key);
    await box.getByText("Charge limits and credits").click();
    await box.getByRole("button", { name: "Verify", exact: true }).click();
    await box.getByText("VALID", { exact: true }).waitFor();
    await box.getByText("0 of 3 slots of 'calls'").waitFor();
    await page.getByRole("button", { name: "Edit how many calls run at once" }).click();
    await page.getByRole("button", { name: "Remove the limit calls" }).click();
    await page.getByText('"concurrency": null').waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await eventuallyEqual(async () => (await get()).concurrency, undefined);
  });

  it("lets some addresses use a key, and says that others may not", async () => {
    const { key, get, path } = await makeKey();
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Edit the allowed addresses" }).click();
    await page.getByRole("textbox", { name: "Allowed addresses" }).fill("198.51.100.0/24 ");
    await page.getByText('["198.51.100.0/24"]').waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the allowed addresses" }).waitFor();
    await eventuallyEqual(async () => (await get()).allowedIps, ["198.51.100.0/24"]);
    await isAccessible(page);
    const box = page.getByRole("region", { name: "Verify a key" });
    await box.getByLabel("Key", { exact: true }).fill(key);
    await box.getByRole("button", { name: "Verify", exact: true }).click();
    await box.getByText(/^The allow-list of the key does not contain/).waitFor();
  });

  it("reads the windows of a key that limits how many calls run at once", async () => {
    const { key, path } = await makeKey({
      concurrency: [{ name: "calls", limit: 3 }],
      ratelimits: [{ name: "requests", limit: 5, duration: 60_000, autoApply: true }],
    });
    await dashboard.ok("keys.verifyKey", { key, hold: { ttl: 60_000 } });
    const page = await dashboard.visit(path);
    await settled(page);
    await page.getByRole("button", { name: "Read them" }).click();
    await page.getByText("requests: 1 of 5 in 1 minute").waitFor();
  });

  it("rotates with an overlap", async () => {
    const { keyId, key, path } = await makeKey({ name: "rotated" });
    const page = await dashboard.visit(path);
    await page.getByRole("button", { name: "Rotate…" }).click();
    await page.getByRole("dialog").getByRole("combobox", { name: "The old key stops" }).selectOption("After an hour");
    await page.getByRole("button", { name: "Rotate key" }).click();
    const secret = await page.locator("[data-secret]").textContent();
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.waitForURL((url) => url.pathname.includes("/keys/") && !url.pathname.endsWith(keyId));
    for (const text of [key, secret]) assert.equal((await dashboard.ok("keys.verifyKey", { key: text })).code, "VALID");
    const { expires } = await dashboard.ok("keys.getKey", { keyId });
    assert.ok(Math.abs(expires - Date.now() - 3_600_000) < 60_000);
  });

  it("disables and deletes, and undoes both", async () => {
    const { keyId, get, path } = await makeKey({ name: "short-lived" });
    const page = await dashboard.visit(path);
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByText("short-lived is disabled.").waitFor();
    assert.equal((await get()).enabled, false);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Disable" }).waitFor();
    await page.getByRole("button", { name: "More about this key" }).click();
    await page.getByRole("menuitem", { name: "Delete…" }).click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Delete key" });
    await eventuallyEqual(() => confirm.getAttribute("aria-disabled"), "true");
    await page.getByLabel("Type short-lived to confirm").fill("short-lived");
    await confirm.click();
    await page.waitForURL((url) => url.pathname === `/apis/${apiId}`);
    const { status } = await dashboard.server.call("keys.getKey", { keyId });
    assert.equal(status, 404);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Restored short-lived.").waitFor();
    assert.equal((await get()).enabled, true);
  });

  it("has a page when it is deleted, with its history and a way back", async () => {
    const { keyId, key, path } = await makeKey({ name: "gone", credits: { remaining: 10 } });
    await dashboard.ok("keys.deleteKey", { keyId });
    const page = await dashboard.visit(path);
    await page.getByText("Deleted", { exact: true }).first().waitFor();
    await page.getByText("keys.deleteKey", { exact: true }).waitFor();
    await isAccessible(page);
    await page.getByRole("button", { name: "Restore" }).click();
    await page.getByText("Restored gone.").waitFor();
    await page.getByRole("button", { name: "Rotate…" }).waitFor();
    const { code, credits } = await dashboard.ok("keys.verifyKey", { key });
    assert.deepEqual([code, credits], ["VALID", 9]);
  });

  it("charts its use by code, by tag and by credits", async () => {
    const { keyId, key, path } = await makeKey({ credits: { remaining: 10 } });
    for (const [tag, cost] of [
      ["path=/charges", 3],
      ["path=/charges", 2],
      ["path=/refunds", 20],
    ] as const) {
      await dashboard.ok("keys.verifyKey", { key, tags: [tag], credits: { cost } });
    }
    const now = Date.now();
    await eventually("the analytics counted everything", async () => {
      const range = { start: now - 3_600_000, end: now + 3_600_000, granularity: "hour" };
      return (await dashboard.ok("analytics.getKeyStats", { keyId, ...range })).total === 3;
    });
    const page = await dashboard.visit(path);
    const codes = page.getByRole("list", { name: "Codes" });
    await eventuallyMatch(() => codes.getByRole("listitem").first().textContent(), /^VALID67 %2$/);
    await page.getByRole("button", { name: "By tag" }).click();
    const ofTags = page.getByRole("table", { name: "Verifications by tag" });
    await ofTags.getByRole("columnheader", { name: "path=/charges" }).waitFor({ state: "attached" });
    await eventuallyMatch(() => ofTags.getByRole("row").last().textContent(), /21$/);
    await page.getByRole("button", { name: "Credits", exact: true }).click();
    const ofCredits = page.getByRole("table", { name: "Credits spent" });
    await ofCredits.waitFor({ state: "attached" });
    await eventuallyMatch(() => ofCredits.getByRole("row").last().textContent(), /5$/);
    const spend = page.getByRole("table", { name: "History of the credits" }).getByText("−5");
    await reveal(page.getByText("History of the credits", { exact: true }), spend);
    await page.getByRole("link", { name: "Open in the analytics" }).click();
    await page.waitForURL((url) => url.pathname === "/analytics" && url.searchParams.get("key") === keyId);
  });

  it("shows its audit trail and its calls", async () => {
    const { keyId, path } = await makeKey();
    const page = await dashboard.visit(path);
    await reveal(page.getByRole("heading", { name: "Activity" }), page.getByText("keys.createKey"));
    await dashboard.ok("keys.updateKey", { keyId, name: "renamed" });
    await page.reload();
    const update = page.getByText("keys.updateKey", { exact: true });
    await reveal(page.getByRole("heading", { name: "Activity" }), update);
    await update.click();
    const change = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: "name", exact: true }) });
    await change.first().waitFor();
    await eventuallyEqual(() => change.locator("ins").first().textContent(), "renamed");
    await eventuallyEqual(() => change.locator("del").first().textContent(), "before");
    await page.getByRole("combobox", { name: "What to do" }).selectOption("Disable it");
    await page.getByText(`"keyId": "${keyId}"`).first().waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const { path } = await makeKey({
        meta: { plan: "pro" },
        roles: ["reader"],
        credits: { remaining: 40, refill: { interval: "daily", amount: 100 } },
        ratelimits: [{ name: "requests", limit: 100, duration: 60_000 }],
      });
      const page = await dashboard.visit(path, { scheme });
      await isAccessible(page);
    });
  }
});
