import assert from "node:assert/strict";
import { it } from "node:test";
import { describeDashboard, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, pressIn } from "./waiting.ts";

describeDashboard("events", (dashboard) => {
  it("lists events, filters them, and shows one as programs get it", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
    const { keyId } = await dashboard.ok("keys.createKey", { apiId, externalId: "acme" });
    await dashboard.ok("keys.updateKey", { keyId, enabled: false });
    const page = await dashboard.visit("/events");
    const types = () => page.getByRole("table", { name: "Events" }).getByRole("row").locator("code:first-child");
    await page.getByRole("row").filter({ hasText: "key.disabled" }).waitFor();

    await page.getByRole("search", { name: "Filters" }).getByRole("button", { name: "Type" }).click();
    await page.getByRole("menuitem", { name: "key.*", exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get("type") === "key.");
    await page.getByRole("row").filter({ hasText: "api.created" }).waitFor({ state: "detached" });
    await page.getByRole("row").filter({ hasText: "key.created" }).click();
    const panel = page.getByRole("complementary", { name: "key.created" });
    await panel.getByText('"externalId": "acme"').waitFor();
    const { href } = new URL((await panel.getByRole("link", { name: keyId }).getAttribute("href"))!, dashboard.address);
    assert.equal(href, `${dashboard.address}/apis/${apiId}/keys/${keyId}`);

    // What is open and what is filtered are in the address.
    await page.reload();
    await panel.getByText('"externalId": "acme"').waitFor();
    await panel.getByRole("button", { name: "All its events" }).first().click();
    await page.waitForURL((url) => url.searchParams.get("object") === keyId);
    await page.getByRole("button", { name: "Remove the filter Type" }).click();
    await page.waitForURL((url) => !url.searchParams.has("type"));
    await eventuallyEqual(
      async () => (await types().allTextContents()).filter((text) => text.includes(".")),
      ["key.disabled", "key.created"],
    );
    await page.goto(`${dashboard.address}/events?object=key_none`);
    await page.getByText("No event matches the filters").waitFor();
  });

  it("loads more when it is scrolled", async () => {
    const externalIds = Array.from({ length: 130 }, (_, index) => `owner_${index}`);
    await Promise.all(externalIds.map((externalId) => dashboard.ok("identities.createIdentity", { externalId })));
    const page = await dashboard.visit("/events?type=identity.created");
    await page.getByRole("row").nth(1).waitFor();
    const listed = await dashboard.ok("events.listEvents", { types: ["identity.created"], limit: 1 });
    const oldest = page.getByRole("row").filter({ hasText: listed[0].data.identityId });
    await eventuallyEqual(() => oldest.count(), 0);
    while ((await oldest.count()) === 0) await page.mouse.wheel(0, 2_000);
  });

  it("steps through the rows in the panel, and says that the event of a link is not listed", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "steps" });
    const { keyId } = await dashboard.ok("keys.createKey", { apiId });
    await dashboard.ok("keys.updateKey", { keyId, enabled: false });
    const [{ id }] = await dashboard.ok("events.listEvents", { objectId: keyId, types: ["key.created"], limit: 1 });
    const page = await dashboard.visit(`/events?object=${keyId}&open=${id}`);
    await page.getByRole("complementary", { name: "key.created" }).waitFor();
    const next = page.getByRole("button", { name: "Next row" });
    await eventuallyEqual(() => next.getAttribute("aria-disabled"), "true", "it is the last row");
    await page.getByRole("button", { name: "Previous row" }).click();
    const panel = page.getByRole("complementary", { name: "key.disabled" });
    await panel.waitFor();
    await next.click();
    await page.getByRole("complementary", { name: "key.created" }).waitFor();
    await pressIn(page.getByRole("complementary"), "Escape");
    await page.waitForURL((url) => !url.searchParams.has("open"));
    await eventuallyEqual(() => page.getByRole("complementary").count(), 0);

    await page.goto(`${dashboard.address}/events?object=${apiId}&open=${id}`);
    await page.getByText(`${id} is not among the rows that are listed.`).waitFor();
  });

  it("says that there are newer events, and shows them when asked to", async () => {
    const page = await dashboard.visit("/events?type=role.");
    await page.getByText("No event matches the filters").waitFor();
    await dashboard.ok("permissions.createRole", { name: "reader" });
    await page.reload();
    await page.getByRole("row").filter({ hasText: "role.created" }).waitFor();
    const { roleId } = await dashboard.ok("permissions.createRole", { name: "writer" });
    await dashboard.ok("apis.createApi", { name: "not a role" });
    await page.getByRole("button", { name: "Show 1 newer event" }).click();
    await page.getByRole("row").filter({ hasText: roleId }).waitFor();
    await page.getByRole("button", { name: "Show 1 newer event" }).waitFor({ state: "detached" });
  });

  it("says which permission is missing", async () => {
    const { key } = await dashboard.ok("rootKeys.createRootKey", { name: "none", permissions: ["apis.*.read_api"] });
    const page = await dashboard.visit("/events", { as: key });
    await page.getByText("events.*.read_event").waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const [{ id }] = await dashboard.ok("events.listEvents", { types: ["key.created"], limit: 1 });
      const page = await dashboard.visit(`/events?type=key.&open=${id}`, { scheme });
      await page.getByRole("complementary").waitFor();
      await isAccessible(page);
    });
  }
});
