import assert from "node:assert/strict";
import { it } from "node:test";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, isAccessible, reveal } from "./dashboard.ts";
import { eventuallyEqual, eventuallyMatch, eventuallyPasses } from "./waiting.ts";

describeDashboard("budgets", (dashboard) => {
  const create = async (body: object): Promise<string> => (await dashboard.ok("budgets.createBudget", body)).budgetId;
  const get = (budgetId: string) => dashboard.ok("budgets.getBudget", { budgetId });

  it("explains itself while there are none, and creates the first one", async () => {
    const page = await dashboard.visit("/budgets");
    await page.getByRole("heading", { name: "No budgets yet" }).waitFor();
    await page.getByText("/v2/budgets.createBudget").waitFor();
    await page.getByRole("button", { name: "Create budget" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Company");
    await dialog.getByLabel("Credits").fill("1000");
    await dialog.getByLabel("Unit").fill("token");
    await dialog.getByLabel("Refill", { exact: true }).selectOption("weekly");
    await dialog.getByLabel("Refill amount").fill("500");
    await dialog.getByLabel("Thresholds").fill("80 101 ");
    const send = dialog.getByRole("button", { name: "Create budget" });
    await eventuallyEqual(() => send.getAttribute("aria-disabled"), "true");
    await dialog.getByRole("button", { name: "Remove 101" }).click();
    await send.click();
    await page.getByRole("heading", { name: "Company" }).waitFor();
    const [created] = await dashboard.ok("budgets.listBudgets", {});
    assert.deepEqual(
      [created.name, created.remaining, created.unit, created.thresholds, created.refill],
      ["Company", 1_000, "token", [80], { interval: "weekly", amount: 500, refillDay: 1 }],
    );
  });

  it("changes what a budget is set to, adds credits to it, and takes that back", async () => {
    const budgetId = await create({ name: "settings", remaining: 10 });
    const page = await dashboard.visit(`/budgets/${budgetId}`);
    const edit = async (button: string, change: () => Promise<unknown>) => {
      await page.getByRole("button", { name: button }).click();
      await change();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: button }).waitFor();
    };
    await edit("Edit the name", () => page.getByLabel("Name", { exact: true }).fill("changed"));
    await edit("Edit the refill", async () => {
      await page.getByLabel("Refill", { exact: true }).selectOption("monthly");
      await page.getByLabel("Time zone").fill("Europe/Berlin");
    });
    await edit("Edit the thresholds", () => page.getByRole("textbox", { name: "Thresholds" }).fill("90 50 "));
    await edit("Edit what happens to calls", () =>
      page.getByLabel("A call that it does not cover").selectOption("allow"),
    );
    await edit("Edit the metadata", () => page.getByLabel("Metadata", { exact: true }).fill('{ "cost": 7 }'));
    const changed = await get(budgetId);
    assert.deepEqual(
      [changed.name, changed.thresholds, changed.onEmpty, changed.meta],
      ["changed", [50, 90], "allow", { cost: 7 }],
    );
    assert.deepEqual(changed.refill, { interval: "monthly", amount: 10, refillDay: 1, timeZone: "Europe/Berlin" });
    await page.getByText("Monthly on day 1 (Europe/Berlin) it is set to 10.").waitFor();
    await page.getByLabel("Credits", { exact: true }).fill("90");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("Added 90 credits.").waitFor();
    assert.equal((await get(budgetId)).remaining, 100);
    await page.getByRole("button", { name: "Undo" }).click();
    await eventuallyEqual(async () => (await get(budgetId)).remaining, 10);
    await page.waitForFunction(() => document.querySelector("dd")?.textContent === "10");
    await edit("Edit the refill", () => page.getByLabel("Refill", { exact: true }).selectOption("none"));
    assert.equal((await get(budgetId)).refill, undefined);
  });

  it("are a tree with what each has spent, which is folded and searched", async () => {
    const root = await create({ name: "root", remaining: 100, thresholds: [50] });
    const team = await create({ name: "team", parentId: root, remaining: 40 });
    await create({ name: "leaf", parentId: team, remaining: 0 });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "tree" });
    const { key } = await dashboard.ok("keys.createKey", { apiId, budgetId: team });
    await dashboard.ok("keys.verifyKey", { key, credits: { cost: 40 } });
    await dashboard.ok("budgets.updateCredits", { budgetId: root, operation: "decrement", value: 20 });
    const page = await dashboard.visit("/budgets");
    const rows = page.getByRole("row");
    const row = (name: string) => rows.filter({ has: page.getByRole("link", { name, exact: true }) });
    await row("leaf").waitFor();
    const names = () => page.getByRole("row").getByRole("link").allTextContents();
    await eventuallyEqual(async () => (await names()).slice(-3), ["root", "team", "leaf"]);
    const meter = (name: string) => page.getByRole("meter", { name: `Spent of ${name}` });
    await eventuallyEqual(() => meter("root").getAttribute("aria-valuetext"), "40 of 80");
    await eventuallyEqual(() => meter("root").getAttribute("aria-valuenow"), "50");
    await eventuallyMatch(() => row("root").textContent(), /50 % reached/);
    await eventuallyMatch(() => row("team").textContent(), /Used up/);
    await page.getByRole("button", { name: "Budgets below team" }).click();
    await row("leaf").waitFor({ state: "detached" });
    await page.getByRole("searchbox").fill("LEA");
    await row("root").waitFor({ state: "detached" });
    await row("leaf").getByRole("link").click();
    await page.waitForURL((url) => url.pathname.startsWith("/budgets/bud_"));
    for (const parent of ["root", "team"]) {
      await page.getByRole("link", { name: parent, exact: true }).first().waitFor();
    }
    await eventuallyEqual(
      () => page.getByRole("button", { name: "Create budget below" }).getAttribute("aria-disabled"),
      null,
    );
  });

  it("show what calls hold apart from what was spent, and say when all of it is held", async () => {
    const root = await create({ name: "holding", remaining: 100, thresholds: [50] });
    const team = await create({ name: "all held", parentId: root, remaining: 40 });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "holding" });
    const { key } = await dashboard.ok("keys.createKey", { apiId, budgetId: team });
    await dashboard.ok("keys.verifyKey", { key, credits: { cost: 10 } });
    const { hold } = await dashboard.ok("keys.verifyKey", { key, credits: { cost: 30 }, hold: { ttl: 3_600_000 } });
    const page = await dashboard.visit("/budgets");
    const row = (name: string) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
    await row("all held").waitFor();
    const meter = page.getByRole("meter", { name: "Spent of holding" });
    await eventuallyEqual(() => meter.getAttribute("aria-valuetext"), "10 of 100, 30 held");
    await eventuallyEqual(() => meter.getAttribute("aria-valuenow"), "10");
    const widths = () =>
      meter.evaluate((bar) => [...bar.firstElementChild!.children].map(({ clientWidth }) => clientWidth));
    await eventuallyPasses(widths, ([spent, held]) => {
      assert.ok(spent! > 0 && Math.abs(held! - 3 * spent!) <= 3, `${spent} and ${held}`);
    });
    await eventuallyMatch(() => row("holding").textContent(), /10 %.*Available/);
    await eventuallyMatch(() => row("all held").textContent(), /25 %.*Held by calls/);
    await dashboard.ok("holds.settleHold", { holdId: hold.holdId, credits: 30 });
    const after = await dashboard.visit(`/budgets/${team}`);
    await after.getByText("Used up").first().waitFor();
    await eventuallyEqual(() => after.getByText("by calls whose cost is not known yet").count(), 0);
  });

  it("are given to keys and identities, which show what is left, and are taken from them", async () => {
    const company = await create({ name: "acme", remaining: 500, unit: "token" });
    const team = await create({ name: "acme team", parentId: company, remaining: 200 });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "assigned" });
    const { keyId } = await dashboard.ok("keys.createKey", { apiId, name: "ci", externalId: "customer" });
    const { id } = await dashboard.ok("identities.getIdentity", { identity: "customer" });
    const page = await dashboard.visit(`/apis/${apiId}/keys/${keyId}`);
    const choose = async (label: string) => {
      await page.getByRole("button", { name: "Edit the budget" }).click();
      await page.getByLabel("Budget", { exact: true }).selectOption({ label });
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Edit the budget" }).waitFor();
    };
    await choose("\u00a0\u00a0\u00a0\u00a0acme team");
    await reveal(page.getByRole("button", { name: "Edit the budget" }), page.getByText("200 token remain"));
    await page.getByText("500 token remain").waitFor();
    assert.equal((await dashboard.ok("keys.getKey", { keyId })).budgetId, team);
    await page.goto(`${dashboard.address}/identities/${id}`);
    await choose("acme");
    assert.equal((await dashboard.ok("identities.getIdentity", { identity: id })).budgetId, company);

    await page.goto(`${dashboard.address}/budgets/${company}`);
    const having = page.getByRole("list", { name: "Identities of the budget" }).getByRole("link", { name: "customer" });
    await reveal(page.getByRole("heading", { name: "Identities", exact: true }), having);
    const below = page.getByRole("row").getByRole("link", { name: "acme team" });
    await reveal(page.getByRole("heading", { name: "Budgets below" }), below);
    await below.click();
    await page.waitForURL((url) => url.pathname === `/budgets/${team}`);
    const listed = page.getByRole("list", { name: "Keys in assigned" }).getByRole("link", { name: "ci" });
    await reveal(page.getByRole("heading", { name: "Keys", exact: true }), listed);
    await page.getByRole("link", { name: "assigned 1 key" }).click();
    await page.waitForURL((url) => url.searchParams.get("budget") === team);
    await page.getByText("Budget: acme team").waitFor();
    await page.goto(`${dashboard.address}/apis/${apiId}/keys/${keyId}`);
    await choose("None");
    assert.equal((await dashboard.ok("keys.getKey", { keyId })).budgetId, undefined);
  });

  it("are given to keys and identities when these are created", async () => {
    const budgetId = await create({ name: "at creation", remaining: 500 });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "creating" });
    const page = await dashboard.visit(`/apis/${apiId}?create=true`);
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("budgeted");
    await dialog.getByText("Limits and credits").click();
    await dialog.getByLabel("Budget", { exact: true }).selectOption({ label: "at creation" });
    await dialog.getByRole("button", { name: "Create key" }).click();
    await page.locator("[data-secret]").waitFor();
    const [key] = await dashboard.ok("apis.listKeys", { apiId });
    assert.equal(key.budgetId, budgetId);
    await page.goto(`${dashboard.address}/identities`);
    await page.getByRole("button", { name: "Create identity" }).first().click();
    await dialog.getByLabel("External id").fill("budgeted");
    await dialog.getByLabel("Budget", { exact: true }).selectOption({ label: "at creation" });
    await dialog.getByRole("button", { name: "Create identity" }).click();
    await page.getByRole("heading", { name: "budgeted" }).waitFor();
    assert.equal((await dashboard.ok("identities.getIdentity", { identity: "budgeted" })).budgetId, budgetId);
  });

  it("show what was spent from them when", async () => {
    const budgetId = await create({ name: "charted", remaining: 500, unit: "token" });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "charted" });
    const { key } = await dashboard.ok("keys.createKey", { apiId, budgetId });
    await dashboard.ok("keys.verifyKey", { key, credits: { cost: 123 } });
    await dashboard.ok("keys.verifyKey", { key, credits: { cost: 400 } });
    const end = Math.ceil(Date.now() / 3_600_000) * 3_600_000;
    await eventually("the verifications to be counted", async () => {
      const range = { start: end - 3_600_000, end, granularity: "hour" };
      return (await dashboard.ok("analytics.getBudgetStats", { budgetId, ...range })).total === 2;
    });
    const page = await dashboard.visit(`/budgets/${budgetId}`);
    const spent = page.getByText("123 token spent in 2 verifications, 50 % refused");
    await reveal(page.getByRole("heading", { name: "Spend over time" }), spent);
    const sums = () =>
      page
        .locator("figure table tbody tr")
        .evaluateAll((rows) => rows.map((row) => Number(row.lastElementChild?.textContent)).filter((sum) => sum > 0));
    await eventuallyEqual(sums, [123]);
  });

  it("are not deleted while something uses them, which the page says", async () => {
    const budgetId = await create({ name: "doomed", remaining: 1 });
    const child = await create({ name: "child of it", parentId: budgetId, remaining: 1 });
    const page = await dashboard.visit(`/budgets/${budgetId}`);
    await page.getByRole("button", { name: "Actions" }).click();
    await page.getByRole("menuitem", { name: "Delete the budget…" }).click();
    await page.getByLabel("Type doomed to confirm").fill("doomed");
    await page.getByRole("button", { name: "Delete budget" }).click();
    await page.getByText("This budget has children. Delete them first.").waitFor();
    await dashboard.ok("budgets.deleteBudget", { budgetId: child });
    await page.getByRole("button", { name: "Delete budget" }).click();
    await page.waitForURL((url) => url.pathname === "/budgets");
    assert.equal((await dashboard.server.call("budgets.getBudget", { budgetId })).status, 404);
  });

  it("are found with the palette, and say which permission is missing", async () => {
    const parentId = await create({ name: "hidden parent", remaining: 1 });
    const budgetId = await create({ name: "wanted budget", parentId, remaining: 1 });
    const page = await dashboard.visit("/");
    await page.getByRole("button", { name: "Search or run a command" }).click();
    await page.getByRole("textbox", { name: "Search" }).fill("budget WANTED");
    await page.getByRole("menuitem", { name: /wanted budget/ }).click();
    await page.waitForURL((url) => url.pathname === `/budgets/${budgetId}`);
    const reader = await dashboard.ok("rootKeys.createRootKey", {
      name: "reader",
      permissions: [`budgets.${budgetId}.read_budget`],
    });
    const other = await dashboard.visit(`/budgets/${budgetId}`, { as: reader.key });
    await other.getByText("which the root key may not read").waitFor();
    const button = other.getByRole("button", { name: "Edit the name" });
    await eventuallyEqual(() => button.getAttribute("aria-disabled"), "true");
    await other.goto(`${dashboard.address}/budgets`);
    await other.getByText("The root key may not read this").waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`meet axe in ${scheme}`, async () => {
      const budgetId = await create({ name: `axe ${scheme}`, remaining: 5, thresholds: [50, 100] });
      for (const path of ["/budgets", `/budgets/${budgetId}`]) {
        const page = await dashboard.visit(path, { scheme, width: 1024 });
        await page.getByRole("meter").first().waitFor();
        await isAccessible(page);
      }
    });
  }
});
