import assert from "node:assert/strict";
import { it } from "node:test";
import { describeDashboard, fitsWindow, isAccessible, reveal } from "./dashboard.ts";
import { eventuallyEqual } from "./waiting.ts";

describeDashboard("plans", (dashboard) => {
  const requests = (limit: number) => ({ name: "requests", limit, duration: 60_000, autoApply: true });
  const create = async (body: object): Promise<string> => (await dashboard.ok("plans.createPlan", body)).planId;
  const get = (plan: string) => dashboard.ok("plans.getPlan", { plan });

  it("explains itself while there are none, and creates the first one", async () => {
    const page = await dashboard.visit("/plans");
    await page.getByRole("heading", { name: "No plans yet" }).waitFor();
    await page.getByText("/v2/plans.createPlan").waitFor();
    await page.getByRole("button", { name: "Create plan" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("solid gold");
    const send = dialog.getByRole("button", { name: "Create plan" });
    await eventuallyEqual(() => send.getAttribute("aria-disabled"), "true");
    await dialog.getByLabel("Name", { exact: true }).fill("gold");
    await dialog.getByLabel("At most").fill("600");
    await dialog.getByLabel("Permissions").fill("documents.read ");
    await dialog.getByRole("button", { name: "Limit calls at once" }).click();
    await dialog.getByLabel("Calls at once", { exact: true }).fill("");
    await eventuallyEqual(() => send.getAttribute("aria-disabled"), "true");
    await dialog.getByLabel("Calls at once", { exact: true }).fill("3");
    await isAccessible(page);
    await send.click();
    await page.getByRole("heading", { name: "gold", exact: true }).waitFor();
    const { ratelimits, concurrency, permissions } = await get("gold");
    assert.deepEqual(concurrency, [{ name: "calls", limit: 3 }]);
    assert.deepEqual([ratelimits[0].name, ratelimits[0].limit, permissions], ["requests", 600, ["documents.read"]]);
    await page.getByText("To 0 keys and 0 identities.").waitFor();
    await page.goto(`${dashboard.address}/plans`);
    await page.getByText("requests: 600 per minute · calls: 3 at once · 1 permission").waitFor();
    await page.getByRole("searchbox").fill("silver");
    await page.getByText("No plan matches “silver”").waitFor();
  });

  it("creates plans with credits for each key, or with a budget for each identity", async () => {
    const page = await dashboard.visit("/plans");
    const dialog = page.getByRole("dialog");
    const send = dialog.getByRole("button", { name: "Create plan" });
    const begin = async (name: string, balance: string) => {
      await page.getByRole("button", { name: "Create plan" }).first().click();
      await dialog.getByLabel("Name", { exact: true }).fill(name);
      await dialog.getByLabel("At most").fill("600");
      await dialog.getByLabel("Balance").selectOption(balance);
      await eventuallyEqual(() => send.getAttribute("aria-disabled"), "true", "without an amount");
      await isAccessible(page);
    };
    await begin("prepaid", "credits");
    await dialog.getByLabel("Amount").fill("5000");
    await dialog.getByLabel("Refill", { exact: true }).selectOption("monthly");
    await dialog.getByLabel("Day of the month").fill("15");
    await send.click();
    await page.getByRole("heading", { name: "prepaid", exact: true }).waitFor();
    const prepaid = await get("prepaid");
    assert.deepEqual(prepaid.credits, { amount: 5_000, refill: { interval: "monthly", refillDay: 15 } });
    assert.equal(prepaid.budget, undefined);

    await page.goto(`${dashboard.address}/plans`);
    await begin("pooled", "budget");
    await dialog.getByLabel("Amount").fill("90000");
    await dialog.getByRole("textbox", { name: "Unit" }).fill("token");
    await dialog.getByLabel("Thresholds").fill("80 ");
    await dialog.getByLabel("A call that it does not cover").selectOption("allow");
    await send.click();
    await page.getByRole("heading", { name: "pooled", exact: true }).waitFor();
    const pooled = await get("pooled");
    assert.deepEqual(pooled.budget, { amount: 90_000, onEmpty: "allow", thresholds: [80], unit: "token" });
    assert.equal(pooled.credits, undefined);
  });

  it("says what a change does to how many keys before it is saved, and who has the plan", async () => {
    const planId = await create({ name: "team", ratelimits: [requests(600)] });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "planned" });
    for (const [name, more] of [
      ["first", {}],
      ["second", {}],
      ["own", { ratelimits: [requests(5)] }],
    ] as const) {
      await dashboard.ok("keys.createKey", { apiId, plan: "team", name, ...more });
    }
    await dashboard.ok("identities.createIdentity", { externalId: "acme", plan: "team" });
    const page = await dashboard.visit(`/plans/${planId}`);
    await page.getByText("To 3 keys and 1 identity.").waitFor();
    await page.getByRole("button", { name: "Edit the limits" }).click();
    await page.getByLabel("At most").fill("1000");
    const preview = page.getByRole("status", { name: "What the change does" });
    await preview.getByText("600 per minute → 1,000 per minute").waitFor();
    await preview.getByText("2 keys and 1 identity; 1 key has its own limit and stays").waitFor();
    await eventuallyEqual(() => preview.getByText("no longer counts").count(), 0);
    await page.getByLabel("Unit").selectOption("hour");
    await preview.getByText("600 per minute → 1,000 per hour").waitFor();
    await preview.getByText("what was counted so far no longer counts").waitFor();
    assert.equal((await get("team")).version, 1);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the limits" }).waitFor();
    await page.getByText("1,000 per hour").first().waitFor();
    await eventuallyEqual(async () => (await get("team")).ratelimits[0].duration, 3_600_000);

    await page.getByRole("button", { name: "Edit the permissions" }).click();
    await page.getByRole("combobox", { name: "Permissions" }).fill("documents.read ");
    await preview.getByText("+documents.read").waitFor();
    await preview.getByText("3 keys", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the permissions" }).waitFor();
    await eventuallyEqual(async () => (await get("team")).permissions, ["documents.read"]);

    const keys = page.getByRole("list", { name: "Keys in planned" });
    await reveal(page.getByRole("heading", { name: "Keys", exact: true }), keys);
    await eventuallyEqual(() => keys.getByRole("listitem").count(), 3);
    await reveal(
      page.getByRole("heading", { name: "Identities", exact: true }),
      page.getByRole("list", { name: "Identities with the plan" }).getByText("acme"),
    );
    await page.getByRole("link", { name: /^planned/ }).click();
    await page.getByRole("button", { name: /Plan/ }).first().waitFor();
    await eventuallyEqual(() => new URL(page.url()).searchParams.get("plan"), "team");
    await eventuallyEqual(() => page.getByRole("row").getByText("first").count(), 1);
  });

  it("is given to keys and identities, and taken from them", async () => {
    await create({ name: "pro", ratelimits: [requests(70)] });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "given" });
    const { keyId } = await dashboard.ok("keys.createKey", { apiId, externalId: "globex" });
    const { id } = await dashboard.ok("identities.getIdentity", { identity: "globex" });
    const page = await dashboard.visit(`/apis/${apiId}/keys/${keyId}`);
    const change = async (plan: string) => {
      await page.getByRole("button", { name: "Edit the plan" }).click();
      await page.getByLabel("Plan", { exact: true }).selectOption(plan);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Edit the plan" }).waitFor();
    };
    await change("pro");
    await page.getByText("requests: 70 per minute").waitFor();
    await eventuallyEqual(async () => (await dashboard.ok("keys.getKey", { keyId })).plan, "pro");
    await change("");
    await eventuallyEqual(async () => (await dashboard.ok("keys.getKey", { keyId })).plan, undefined);
    await page.goto(`${dashboard.address}/identities/${id}`);
    await change("pro");
    await eventuallyEqual(async () => (await dashboard.ok("identities.getIdentity", { identity: id })).plan, "pro");
    await page.goto(`${dashboard.address}/apis/${apiId}/keys/${keyId}`);
    const link = page.getByRole("link", { name: "pro", exact: true });
    await reveal(page.getByText("Plan of globex"), link);
    await link.click();
    await page.getByRole("heading", { name: "pro", exact: true }).waitFor();

    await page.goto(`${dashboard.address}/apis/${apiId}?create=true`);
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Limits and credits").click();
    await dialog.getByLabel("Plan", { exact: true }).selectOption("pro");
    await dialog.getByText("the plan pro").waitFor();
    await dialog.getByRole("button", { name: "Create key" }).click();
    await page.getByText("Verify it now").first().waitFor();
    const [newest] = await dashboard.ok("apis.listKeys", { apiId, order: "desc" });
    assert.equal(newest.plan, "pro");
  });

  it("gives credits to keys and a budget to identities, which are edited with a preview", async () => {
    const sold = await create({ name: "sold", credits: { amount: 100 } });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "sold" });
    await dashboard.ok("keys.createKey", { apiId, plan: "sold" });
    const page = await dashboard.visit(`/plans/${sold}`);
    const preview = page.getByRole("status", { name: "What the change does" });
    await page.getByRole("button", { name: "Edit the credits" }).click();
    await page.getByLabel("Amount", { exact: true }).fill("250");
    await page.getByLabel("Refill", { exact: true }).selectOption("monthly");
    await page.getByLabel("Day of the month").fill("15");
    await preview.getByText("100 credits → 250 credits. Monthly on day 15 it is set to 250.").waitFor();
    await preview.getByText("1 key", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the credits" }).waitFor();
    const credits = { amount: 250, refill: { interval: "monthly", refillDay: 15 } };
    await eventuallyEqual(async () => (await get("sold")).credits, credits);
    await page.getByRole("button", { name: "Edit the credits" }).click();
    await page.getByLabel("Amount", { exact: true }).fill("");
    await preview.getByText("→ none").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await eventuallyEqual(async () => (await get("sold")).credits, undefined);

    const planId = await create({ name: "customer" });
    await dashboard.ok("identities.createIdentity", { externalId: "umbrella", plan: "customer" });
    await page.goto(`${dashboard.address}/plans/${planId}`);
    await page.getByRole("button", { name: "Edit the budget" }).click();
    await page.getByLabel("Amount", { exact: true }).fill("9000");
    await page.getByLabel("Unit", { exact: true }).fill("token");
    await page.getByLabel("Thresholds").fill("80 ");
    await page.getByLabel("Refill", { exact: true }).selectOption("daily");
    await preview.getByText("none → 9,000 token. Daily it is set to 9,000. Events at 80 %.").waitFor();
    await preview.getByText("1 identity", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit the budget" }).waitFor();
    const budget = { amount: 9_000, refill: { interval: "daily" }, onEmpty: "deny", thresholds: [80], unit: "token" };
    await eventuallyEqual(async () => (await get("customer")).budget, budget);
    await isAccessible(page);

    const { key } = await dashboard.ok("keys.createKey", { apiId, externalId: "umbrella" });
    await dashboard.ok("keys.verifyKey", { key, credits: { cost: 1_000 } });
    const { id } = await dashboard.ok("identities.getIdentity", { identity: "umbrella" });
    await page.goto(`${dashboard.address}/identities/${id}`);
    await page.getByText("Left of the plan’s budget").waitFor();
    await page.getByRole("link", { name: "8,000", exact: true }).click();
    await page.getByRole("heading", { name: "customer" }).waitFor();
    await page.getByRole("link", { name: "umbrella" }).waitFor();
    await eventuallyEqual(() => page.getByRole("button", { name: "Edit the refill" }).count(), 0);
    await eventuallyEqual(() => page.getByRole("button", { name: "Actions" }).count(), 0);
    await isAccessible(page);
  });

  it("is not deleted while somebody has it", async () => {
    const planId = await create({ name: "used" });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "using" });
    const { keyId } = await dashboard.ok("keys.createKey", { apiId, plan: "used" });
    const page = await dashboard.visit(`/plans/${planId}`);
    const remove = async () => {
      await page.getByRole("button", { name: "Actions" }).click();
      await page.getByRole("menuitem", { name: "Delete the plan…" }).click();
      await page.getByRole("textbox").last().fill("used");
      await page.getByRole("button", { name: "Delete plan" }).click();
    };
    await remove();
    await page
      .getByRole("dialog")
      .getByText(/in use|uses it|have it|has it/i)
      .first()
      .waitFor();
    await dashboard.ok("keys.updateKey", { keyId, plan: null });
    await page.goto(`${dashboard.address}/plans/${planId}`);
    await page.getByRole("heading", { name: "used", exact: true }).waitFor();
    await remove();
    await page.getByText("Deleted the plan used.").waitFor();
    await page.getByRole("heading", { name: "Plans", exact: true }).waitFor();
  });

  it("says what the root key may not do", async () => {
    const planId = await create({
      name: "locked",
      ratelimits: [requests(1)],
      concurrency: [{ name: "jobs", limit: 3 }],
      credits: { amount: 5_000, refill: { interval: "monthly" } },
    });
    const { key } = await dashboard.ok("rootKeys.createRootKey", {
      name: "reader",
      permissions: ["plans.*.read_plan"],
    });
    const page = await dashboard.visit(`/plans/${planId}`, { as: key });
    const edit = page.getByRole("button", { name: "Edit the limits" });
    await eventuallyEqual(() => edit.getAttribute("aria-disabled"), "true");
    await page.getByText("jobs 3 calls").waitFor();
    await page.getByText("5,000 credits. Monthly on day 1 it is set to 5,000.").waitFor();
    await page.getByText("To 0 keys and 0 identities.").waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`fits and is accessible (${scheme})`, async () => {
      const { planId } = await get("team");
      for (const width of [375, 1280]) {
        for (const [name, path] of [
          ["plans", "/plans"],
          ["plan", `/plans/${planId}`],
        ] as const) {
          const page = await dashboard.visit(path, { scheme, width, height: 812 });
          await page.locator("h1").first().waitFor();
          if (name === "plan") {
            await page.getByRole("button", { name: "Edit the limits" }).click();
            await page.getByLabel("At most").fill("2000");
            await page.getByText("2 keys and 1 identity").waitFor();
          }
          await fitsWindow(page);
          await isAccessible(page);
          const images = process.env.LATCHKEY_TEST_IMAGES;
          if (images !== undefined)
            await page.screenshot({ path: `${images}/${name}-${width}-${scheme}.png`, fullPage: true });
        }
      }
    });
  }
});
