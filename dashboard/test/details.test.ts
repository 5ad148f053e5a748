/** What one notices on a second look. */
import assert from "node:assert/strict";
import { before, it } from "node:test";
import { describeDashboard, isAccessible, reveal, settled } from "./dashboard.ts";
import { eventuallyEqual, eventuallyPasses, pressIn, typeIn } from "./waiting.ts";

const HOUR = 3_600_000;
const RTL_NAME = "مفتاح الإنتاج لخدمة الفواتير الإلكترونية في المنطقة الشرقية للعملاء الكبار والموزعين والشركاء الجدد";

describeDashboard(
  "the details",
  (dashboard) => {
    let apiId: string;
    let key: { keyId: string; key: string };

    before(async () => {
      ({ apiId } = await dashboard.ok("apis.createApi", { name: "payments" }));
      key = await dashboard.ok("keys.createKey", {
        apiId,
        name: RTL_NAME,
        externalId: "acme",
        ratelimits: [{ name: "requests", limit: 1, duration: HOUR, autoApply: true }],
      });
      await dashboard.ok("keys.updateKey", { keyId: key.keyId, enabled: true });
      await dashboard.ok("keys.verifyKey", { key: key.key });
    });

    it("keeps a key string neither in the search field nor in the address, however it is entered", async () => {
      const page = await dashboard.visit(`/apis/${apiId}`);
      const field = page.getByRole("searchbox", { name: "Search keys" });
      await field.focus();
      await typeIn(field, key.key);
      await page.waitForURL((url) => url.searchParams.get("key") === key.keyId);
      await eventuallyEqual(() => field.inputValue(), "");
      assert.ok(!page.url().includes(key.key));
    });

    it("says in words when an exhausted limit has room again", async () => {
      const page = await dashboard.visit(`/apis/${apiId}/keys/${key.keyId}`);
      const verify = page.getByRole("button", { name: "Verify", exact: true });
      await reveal(page.getByRole("heading", { name: "Limits and credits" }), verify);
      await verify.click();
      await page
        .getByText(/Without other calls it passes in (1 hour|\d+ minutes)/)
        .first()
        .waitFor();
    });

    it("writes dates in the language of its texts and numbers", async () => {
      const page = await dashboard.visit(`/apis/${apiId}/keys/${key.keyId}`, { locale: "de-DE" });
      await page.locator("time").first().waitFor();
      const shown = (await page.locator("time").evaluateAll((all) => all.map(({ outerHTML }) => outerHTML))).join();
      assert.match(shown, /\d{1,2} \p{L}+ 20\d\d, \d\d:\d\d/u);
      assert.doesNotMatch(shown, /\d\d\.\d\d\.20\d\d/);
    });

    it("draws small bars at the same place, whatever number is beside them", async () => {
      const page = await dashboard.visit("/apis");
      const bars = page.getByRole("img", { name: /verifications in the last/ });
      await bars.waitFor();
      await settled(page);
      const place = () => bars.evaluate((svg) => svg.getBoundingClientRect().x);
      const before = await place();
      await bars.evaluate((svg) => {
        svg.nextElementSibling!.querySelector("[title], .tabular-nums")!.textContent = "999.9K";
      });
      await eventuallyEqual(place, before);
    });

    it("shows that a change expands, and who made it", async () => {
      const { key: rootKey } = await dashboard.ok("rootKeys.createRootKey", { name: "deployer", permissions: ["*"] });
      await dashboard.server.ok("keys.updateKey", { keyId: key.keyId, meta: { plan: "gold" } }, rootKey);
      const page = await dashboard.visit(`/apis/${apiId}/keys/${key.keyId}`);
      const change = page.locator("summary").filter({ hasText: "keys.updateKey" }).first();
      await reveal(page.getByRole("heading", { name: "Activity" }), change.getByText("deployer"));
      const chevron = change.locator("svg");
      const angle = () => chevron.evaluate((svg) => getComputedStyle(svg).rotate);
      const closed = await angle();
      await change.click();
      await eventuallyPasses(angle, (open) => assert.notEqual(open, closed));
    });

    it("shows a page that does not exist among the places", async () => {
      for (const path of ["/nothing/of/this/kind", "/apis/x/y/z"]) {
        const page = await dashboard.visit(path);
        await page.getByRole("heading", { name: "There is no such page" }).waitFor();
        await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "APIs" }).click();
        await page.getByRole("heading", { name: "APIs", exact: true }).waitFor();
      }
    });

    it("says that a link was used, and not that a key is missing", async () => {
      const token = await dashboard.linkToken();
      const first = await dashboard.visit(`/#link=${token}`, { as: null });
      await first.waitForURL((url) => url.pathname === "/welcome");
      const page = await dashboard.visit(`/#link=${token}`, { as: null });
      const alert = page.getByRole("alert");
      await alert.getByText("Signing in failed").waitFor();
      await alert.getByText(/was used before/).waitFor();
      await eventuallyEqual(() => alert.getByText("Key not found").count(), 0);
    });

    it("says quietly which permission is missing to read a page", async () => {
      const { key: rootKey } = await dashboard.ok("rootKeys.createRootKey", {
        name: "narrow",
        permissions: ["webhooks.*.read_webhook"],
      });
      for (const path of ["/apis", `/apis/${apiId}/keys/${key.keyId}`, `/apis/${apiId}/settings`]) {
        const page = await dashboard.visit(path, { as: rootKey });
        await page.getByText("The root key may not read this").waitFor();
        await eventuallyEqual(() => page.getByRole("alert").count(), 0);
        await isAccessible(page);
      }
    });

    it("waits for a table with rows of its height", async () => {
      const page = await dashboard.visit("/settings");
      await page.route("**/v2/apis.listApis", () => {});
      await page.goto(`${dashboard.address}/apis`);
      const rows = page.locator("[data-skeleton=rows] > div");
      await rows.first().waitFor({ state: "attached" });
      const heights = () => rows.evaluateAll((all) => all.map((row) => (row as HTMLElement).offsetHeight));
      await eventuallyEqual(async () => [...new Set(await heights())], [36]);
    });

    it("shows an owner whole where columns beside it have room", async () => {
      await dashboard.ok("keys.createKey", { apiId, name: "mobile app", externalId: "vandelay-insurance-1497" });
      const page = await dashboard.visit(`/apis/${apiId}`);
      const owner = page.getByRole("link", { name: "vandelay-insurance-1497" });
      await owner.waitFor();
      const [needed, given] = await owner.evaluate((link) => {
        const cell = link.closest("[role=cell]")!;
        return [cell.scrollWidth, cell.clientWidth];
      });
      assert.ok(needed! <= given!, `${needed} pixels in ${given}`);
    });

    it("cuts a name from right to left at its end", async () => {
      const page = await dashboard.visit(`/apis/${apiId}`, { width: 1000 });
      const name = page.getByRole("link", { name: RTL_NAME });
      await name.waitFor();
      // The first letter is at the right, inside the cell.
      const { first, cell } = await name.evaluate((link) => {
        const range = document.createRange();
        const text = document.createTreeWalker(link, NodeFilter.SHOW_TEXT).nextNode()!;
        range.setStart(text, 0);
        range.setEnd(text, 1);
        const box = (at: DOMRect) => ({ left: at.left, right: at.right });
        return {
          first: box(range.getBoundingClientRect()),
          cell: box(link.closest("[role=cell]")!.getBoundingClientRect()),
        };
      });
      assert.ok(first.left >= cell.left && first.right <= cell.right + 1, JSON.stringify({ first, cell }));
    });

    for (const scheme of ["light", "dark"] as const) {
      it(`lists the shortcuts after "?" (${scheme})`, async () => {
        const page = await dashboard.visit("/apis", { scheme });
        await page.getByRole("heading", { name: "APIs", exact: true }).waitFor();
        await page.getByRole("searchbox").press("?");
        await eventuallyEqual(() => page.getByRole("dialog").count(), 0);
        await page.getByRole("searchbox").fill("");
        await page.locator("#main").press("?");
        const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
        await dialog.getByText("Search everything, or run a command").waitFor();
        await isAccessible(page);
        await pressIn(dialog, "Escape");
        await dialog.waitFor({ state: "detached" });
      });
    }
  },
  ["sqlite"],
);
