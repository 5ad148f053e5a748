/** The tasks of a working day, with the actions that each takes: a click, a key such as Enter, or a text that is entered. */
import assert from "node:assert/strict";
import { before, it, type TestContext } from "node:test";
import type { Locator, Page } from "playwright-core";
import { ROOT_KEY } from "../../server/test/process.ts";
import { describeDashboard } from "./dashboard.ts";
import { enterResult, openPalette, pressIn } from "./waiting.ts";

const HOUR = 3_600_000;

/** What a person does with a page, counted. */
class Hand {
  actions = 0;
  readonly page: Page;
  readonly #startedAt = performance.now();

  constructor(page: Page) {
    this.page = page;
  }

  async click(on: Locator): Promise<void> {
    this.actions++;
    await on.click();
  }

  async press(on: Locator, key: string): Promise<void> {
    this.actions++;
    await pressIn(on, key);
  }

  async fill(field: Locator, text: string): Promise<void> {
    this.actions++;
    await field.fill(text);
  }

  /** Finds something with the palette, and opens the first result. */
  async find(text: string, result: RegExp): Promise<void> {
    // The shortcut, the text and Enter.
    this.actions += 3;
    const results = await openPalette(this.page, text);
    await enterResult(results.getByRole("menuitem", { name: result }).first());
  }

  /** Fails if the task took more actions. */
  done(t: TestContext, actionsMax: number): void {
    t.diagnostic(`${this.actions} actions, ${((performance.now() - this.#startedAt) / 1_000).toFixed(1)} s`);
    assert.ok(this.actions <= actionsMax, `${this.actions} actions`);
  }
}

describeDashboard(
  "a person",
  (dashboard) => {
    let deletedId: string;
    let requestId: string;

    before(async () => {
      const { apiId } = await dashboard.ok("apis.createApi", { name: "transfers" });
      await dashboard.ok("apis.createApi", { name: "payments" });
      const limited = await dashboard.ok("keys.createKey", {
        apiId,
        name: "Production",
        externalId: "bank-of-acme",
        ratelimits: [{ name: "requests", limit: 1, duration: HOUR, autoApply: true }],
      });
      await dashboard.ok("identities.updateIdentity", {
        identity: "bank-of-acme",
        ratelimits: [{ name: "tokens", limit: 100, duration: HOUR, autoApply: false }],
      });
      for (let call = 0; call < 2; call++) await dashboard.ok("keys.verifyKey", { key: limited.key });
      const refused = () => dashboard.ok("analytics.listDecisions", { keyId: limited.keyId, refused: true });
      let found = await refused();
      while (found.length === 0) found = await refused();
      requestId = found[0].requestId;
      deletedId = (await dashboard.ok("keys.createKey", { apiId, name: "Staging" })).keyId;
      await dashboard.ok("keys.deleteKey", { keyId: deletedId });
    });

    it("finds a key by part of its name in any API", async (t) => {
      const hand = new Hand(await dashboard.visit("/"));
      await hand.find("prod bank", /^Production/);
      await hand.page.getByRole("heading", { name: "Production" }).waitFor();
      hand.done(t, 3);
    });

    it("says why a request was refused", async (t) => {
      const hand = new Hand(await dashboard.visit("/"));
      await hand.find(requestId, /^RATE_LIMITED/);
      await hand.page.getByRole("complementary").getByText("limit “requests”").waitFor();
      hand.done(t, 3);
    });

    it("restores a key that was deleted a while ago", async (t) => {
      const hand = new Hand(await dashboard.visit("/"));
      await hand.click(hand.page.getByRole("link", { name: "Audit log", exact: true }));
      await hand.click(hand.page.getByRole("row").filter({ hasText: "keys.deleteKey" }).first());
      await hand.click(hand.page.getByRole("link", { name: deletedId }));
      await hand.click(hand.page.getByRole("button", { name: "Restore Staging" }));
      await hand.page.getByRole("button", { name: "Disable", exact: true }).waitFor();
      assert.equal((await dashboard.ok("keys.getKey", { keyId: deletedId })).deletedAt, undefined);
      hand.done(t, 4);
    });

    it("raises the limit of a customer", async (t) => {
      const hand = new Hand(await dashboard.visit("/"));
      await hand.find("bank-of-acme", /^bank-of-acme/);
      await hand.click(hand.page.getByRole("button", { name: "Edit the limits" }));
      await hand.fill(hand.page.getByLabel("At most"), "500");
      await hand.press(hand.page.getByLabel("At most"), "Enter");
      await hand.page.getByText("500").first().waitFor();
      await hand.page.getByRole("button", { name: "Edit the limits" }).waitFor();
      const { ratelimits } = await dashboard.ok("identities.getIdentity", { identity: "bank-of-acme" });
      assert.equal(ratelimits[0].limit, 500);
      hand.done(t, 6);
    });

    it("makes a first key from nothing", async (t) => {
      const { key } = await dashboard.server.ok("workspaces.createWorkspace", { name: "new" }, ROOT_KEY);
      const hand = new Hand(await dashboard.visit("/sign-in", { as: null }));
      await hand.fill(hand.page.getByLabel("Root key"), key);
      await hand.press(hand.page.getByLabel("Root key"), "Enter");
      await hand.fill(hand.page.getByLabel("Name", { exact: true }), "payments");
      await hand.click(hand.page.getByRole("button", { name: "Create API" }));
      await hand.click(hand.page.getByRole("button", { name: "Issue key" }));
      await hand.page.locator("[data-secret]").waitFor();
      hand.done(t, 5);
    });
  },
  ["sqlite"],
);
