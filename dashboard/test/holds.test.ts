import { it } from "node:test";
import { describeDashboard, fitsWindow, isAccessible, reveal } from "./dashboard.ts";
import { eventuallyEqual } from "./waiting.ts";

const HOUR = 3_600_000;

describeDashboard("holds", (dashboard) => {
  const make = async (costs: readonly number[]) => {
    const { budgetId } = await dashboard.ok("budgets.createBudget", { name: "of holds", remaining: 1_000 });
    const { apiId } = await dashboard.ok("apis.createApi", { name: "holding" });
    const { keyId, key } = await dashboard.ok("keys.createKey", { apiId, budgetId, externalId: "acme" });
    const { id } = await dashboard.ok("identities.getIdentity", { identity: "acme" });
    const holdIds: string[] = [];
    for (const cost of costs) {
      const { hold } = await dashboard.ok("keys.verifyKey", { key, credits: { cost }, hold: { ttl: HOUR } });
      holdIds.push(hold.holdId);
    }
    const paths = {
      key: `/apis/${apiId}/keys/${keyId}`,
      budget: `/budgets/${budgetId}`,
      identity: `/identities/${id}`,
    };
    return { apiId, budgetId, keyId, holdIds, paths };
  };
  const stateOf = async (holdId: string) => {
    const { state, charged } = await dashboard.ok("holds.getHold", { holdId });
    return [state, charged];
  };

  it("are settled and released by hand, and shown with what they charged", async () => {
    const { budgetId, keyId, holdIds, paths } = await make([300, 200, 100]);
    const page = await dashboard.visit(paths.key);
    const open = page.getByRole("list", { name: "Open holds" });
    const ended = page.getByRole("list", { name: "Holds that ended" });
    await reveal(page.getByRole("heading", { name: "Holds", exact: true }), open);
    await eventuallyEqual(() => open.getByRole("listitem").count(), 3);
    await page.getByText("None that ended is stored any more").waitFor();

    await page.getByRole("button", { name: `Settle ${holdIds[0]}` }).click();
    await page.getByRole("dialog").getByLabel("Credits").fill("120");
    await page.getByRole("button", { name: "Settle hold", exact: true }).click();
    await page.getByText("Charged 120 credits.").waitFor();
    await ended.getByText("120 credits charged, 300 held").waitFor();
    await eventuallyEqual(() => stateOf(holdIds[0]!), ["settled", 120]);

    await page.goto(dashboard.address + paths.budget);
    await reveal(page.getByRole("heading", { name: "Holds", exact: true }), open);
    await open.getByRole("link", { name: keyId }).first().waitFor();
    await page.getByRole("button", { name: `Release ${holdIds[1]}` }).click();
    await page.getByRole("button", { name: "Release hold", exact: true }).click();
    await page.getByText("Released 200 credits.").waitFor();
    await ended.getByText("0 credits charged, 200 held").waitFor();
    await eventuallyEqual(() => open.getByRole("listitem").count(), 1);
    await eventuallyEqual(() => stateOf(holdIds[1]!), ["released", 0]);
    const { remaining, held } = await dashboard.ok("budgets.getBudget", { budgetId });
    await eventuallyEqual(() => [remaining, held], [780, 100]);

    await page.goto(dashboard.address + paths.identity);
    await reveal(page.getByRole("heading", { name: "Holds", exact: true }), open.getByText("100 credits"));
  });

  it("take slots, whose use is shown on the pages of the key and its identity", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "streaming" });
    const limit = (limit: number) => ({ concurrency: [{ name: "streams", limit }] });
    const { identityId } = await dashboard.ok("identities.createIdentity", { externalId: "streamer", ...limit(5) });
    const { keyId, key } = await dashboard.ok("keys.createKey", { apiId, externalId: "streamer", ...limit(2) });
    const holdIds: string[] = [];
    for (let i = 0; i < 2; i++) {
      const { hold } = await dashboard.ok("keys.verifyKey", { key, hold: { ttl: HOUR } });
      holdIds.push(hold.holdId);
    }
    const page = await dashboard.visit(`/apis/${apiId}/keys/${keyId}`);
    const use = page.getByRole("meter", { name: "Slots of streams in use" });
    const values = () => use.evaluateAll((meters) => meters.map((meter) => (meter as HTMLMeterElement).value));
    await eventuallyEqual(values, [2, 2]);
    await page.getByText("2 of 2 at once").waitFor();
    await page.getByText("full", { exact: true }).waitFor();
    await page.getByText("2 of 5 at once").waitFor();
    const release = page.getByRole("button", { name: `Release ${holdIds[0]}` });
    await reveal(page.getByRole("heading", { name: "Holds", exact: true }), release);
    await release.click();
    await page.getByRole("button", { name: "Release hold", exact: true }).click();
    await eventuallyEqual(values, [1, 1]);
    await eventuallyEqual(() => page.getByText("full", { exact: true }).count(), 0);
    await dashboard.ok("keys.verifyKey", { key, hold: { ttl: HOUR } });
    await dashboard.ok("identities.updateIdentity", { identity: "streamer", ...limit(1) });
    await page.goto(`${dashboard.address}/identities/${identityId}`);
    await page.getByText("2 of 1 at once").waitFor();
    await page.getByText("full, 1 too many").waitFor();
    await page.getByRole("button", { name: "Edit how many calls run at once" }).click();
    await eventuallyEqual(() => page.getByLabel("Calls at once", { exact: true }).inputValue(), "1");
    const images = process.env.LATCHKEY_TEST_IMAGES;
    for (const scheme of ["light", "dark"] as const) {
      for (const width of [375, 1280]) {
        const shown = await dashboard.visit(`/apis/${apiId}/keys/${keyId}`, { scheme, width, height: 812 });
        const heading = shown.getByRole("heading", { name: "Limits and credits" });
        await heading.scrollIntoViewIfNeeded();
        await fitsWindow(shown);
        await isAccessible(shown);
        if (images !== undefined)
          await shown.screenshot({ path: `${images}/slots-${width}-${scheme}.png`, fullPage: true });
      }
    }
  });

  it("say what the root key may not do", async () => {
    const { apiId, keyId, holdIds, paths } = await make([10]);
    const { key } = await dashboard.ok("rootKeys.createRootKey", {
      name: "reader",
      permissions: ["apis.*.read_api", `apis.${apiId}.read_key`],
    });
    const page = await dashboard.visit(paths.key, { as: key });
    const release = page.getByRole("button", { name: `Release ${holdIds[0]}` });
    await reveal(page.getByRole("heading", { name: "Holds", exact: true }), release);
    await eventuallyEqual(() => release.getAttribute("aria-disabled"), "true");
    await eventuallyEqual(
      () =>
        page
          .getByText(keyId)
          .count()
          .then((count) => count > 0),
      true,
    );
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`fit and are accessible (${scheme})`, async () => {
      const { holdIds, paths } = await make(Array.from({ length: 12 }, (_, index) => index + 1));
      await dashboard.ok("holds.settleHold", { holdId: holdIds[0]!, credits: 2_000 });
      for (const width of [375, 1024]) {
        const page = await dashboard.visit(paths.budget, { scheme, width, height: 812 });
        const open = page.getByRole("list", { name: "Open holds" });
        await reveal(page.getByRole("heading", { name: "Holds", exact: true }), open);
        await eventuallyEqual(() => open.getByRole("listitem").count(), 8);
        await page.getByRole("button", { name: "Show more holds" }).click();
        await eventuallyEqual(() => open.getByRole("listitem").count(), 11);
        await fitsWindow(page);
        await isAccessible(page);
        await open.scrollIntoViewIfNeeded();
        const images = process.env.LATCHKEY_TEST_IMAGES;
        if (images !== undefined)
          await page.screenshot({ path: `${images}/holds-${width}-${scheme}.png`, fullPage: true });
      }
    });
  }
});
