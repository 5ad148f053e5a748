import assert from "node:assert/strict";
import { it } from "node:test";
import { describeDashboard, isAccessible, reveal } from "./dashboard.ts";
import { enterResult, eventuallyEqual, openPalette } from "./waiting.ts";

describeDashboard("decisions", (dashboard) => {
  /** A key that is over its limit after one call, with a refusal. Waits until the log has it. */
  const refused = async (externalId: string) => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
    const { keyId, key } = await dashboard.ok("keys.createKey", {
      apiId,
      externalId,
      ratelimits: [{ name: "requests", limit: 1, duration: 3_600_000, autoApply: true }],
    });
    await dashboard.ok("keys.verifyKey", { key });
    await dashboard.ok("keys.verifyKey", { key, tags: ["path=/charge"] });
    const read = () => dashboard.ok("analytics.listDecisions", { keyId, refused: true });
    let found = await read();
    while (found.length === 0) found = await read();
    return { apiId, keyId, decision: found[0] };
  };

  it("say why a request was refused, by its id, and lead to its key", async () => {
    const { apiId, keyId, decision } = await refused("acme");
    const page = await dashboard.visit(`/decisions?about=${decision.requestId}`);
    const rows = page.getByRole("table", { name: "Decisions" }).getByRole("row").filter({ hasText: "RATE_LIMITED" });
    await rows.first().waitFor();
    await eventuallyEqual(() => rows.count(), 1);
    await rows.first().click();
    const panel = page.getByRole("complementary", { name: "RATE_LIMITED" });
    await panel.getByText("limit “requests”").waitFor();
    await panel.getByText("path=/charge", { exact: true }).waitFor();
    const link = await panel.getByRole("link", { name: keyId }).getAttribute("href");
    assert.equal(link, `/apis/${apiId}/keys/${keyId}`);
    await panel.getByRole("button", { name: "All its decisions" }).first().click();
    await page.waitForURL((url) => url.searchParams.get("about") === keyId);
    await page.getByRole("row").filter({ hasText: "VALID" }).waitFor();

    await page.goto(`${dashboard.address}/decisions?about=nonsense`);
    await page.getByText("it filters nothing").waitFor();
    await page.goto(`${dashboard.address}/decisions?about=req_none`);
    await page.getByText("No decision matches the filters").waitFor();
  });

  it("are found by the id of a request with Ctrl K, and name their namespace", async () => {
    const { decision } = await refused("initech");
    await dashboard.ok("ratelimits.limit", { namespace: "sign-ups", identifier: "a", limit: 1, duration: 3_600_000 });
    await dashboard.ok("ratelimits.limit", { namespace: "sign-ups", identifier: "a", limit: 1, duration: 3_600_000 });
    const page = await dashboard.visit("/settings");
    const results = await openPalette(page, decision.requestId);
    await enterResult(results.getByRole("menuitem", { name: /^RATE_LIMITED/ }));
    await page.waitForURL((url) => url.searchParams.get("about") === decision.requestId);
    await page.getByRole("complementary", { name: "RATE_LIMITED" }).waitFor();

    const [namespace] = await dashboard.ok("ratelimits.listNamespaces", {});
    const denied = () => dashboard.ok("analytics.listDecisions", { namespaceId: namespace.id, refused: true });
    while ((await denied()).length === 0);
    await page.goto(`${dashboard.address}/decisions?about=${namespace.id}`);
    await page.getByText("a in sign-ups").first().waitFor();
    await page.getByRole("columnheader", { name: "Took" }).waitFor();
  });

  it("are on the page of the key and of its identity, and linked from the overview and the audit log", async () => {
    const { apiId, keyId, decision } = await refused("globex");
    const page = await dashboard.visit(`/apis/${apiId}/keys/${keyId}`);
    const refusals = page.getByRole("list", { name: "Last refusals" });
    const heading = page.getByRole("heading", { name: "Last refusals" });
    await reveal(heading, refusals.getByText("RATE_LIMITED"));
    await page.goto(`${dashboard.address}/identities/${decision.identityId}`);
    await reveal(heading, refusals.getByText("RATE_LIMITED"));
    await refusals.getByText("RATE_LIMITED").click();
    await page.getByRole("complementary", { name: "RATE_LIMITED" }).waitFor();
    await page.goto(dashboard.address);
    await page.getByRole("link", { name: "All refusals" }).click();
    await page.waitForURL((url) => url.searchParams.get("outcome") === "refused");
    const [{ id }] = await dashboard.ok("audit.listEvents", { target: keyId, limit: 1 });
    await page.goto(`${dashboard.address}/audit?target=${keyId}&open=${id}`);
    await page.getByRole("link", { name: "Its decisions" }).first().click();
    await page.waitForURL((url) => url.pathname === "/decisions");
  });

  it("say which permission is missing", async () => {
    const { key } = await dashboard.ok("rootKeys.createRootKey", { name: "none", permissions: ["apis.*.read_api"] });
    const page = await dashboard.visit("/decisions", { as: key });
    await page.getByText("apis.*.read_analytics").waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`are accessible (${scheme})`, async () => {
      const { keyId, decision } = await refused(`owner_${scheme}`);
      const page = await dashboard.visit(`/decisions?about=${keyId}&open=${decision.id}`, { scheme });
      await page.getByRole("complementary").waitFor();
      await isAccessible(page);
    });
  }
});
