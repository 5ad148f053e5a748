/** What every table can do: usage of all rows in one request, sorting, selection of everything, files, places and views. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, it } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../../server/test/process.ts";
import { describeDashboard, isAccessible, settled } from "./dashboard.ts";
import { eventuallyEqual, eventuallyPasses, openPalette, pressIn } from "./waiting.ts";

const KEYS = 260;

describeDashboard(
  "tables",
  (dashboard) => {
    let apiId: string;

    before(async () => {
      ({ apiId } = await dashboard.ok("apis.createApi", { name: "payments" }));
      for (let index = 0; index < KEYS; index++) {
        await dashboard.ok("keys.createKey", {
          apiId,
          name: `key ${String((index * 7) % KEYS).padStart(3, "0")}`,
          externalId: index % 3 ? "acme" : "globex",
        });
      }
    });

    it("read the usage of all rows in the window with one request", async () => {
      const page = await dashboard.visit("/apis");
      const calls: string[] = [];
      page.on("request", (request) => {
        if (request.url().includes("/v2/analytics.")) calls.push(new URL(request.url()).pathname);
      });
      await page.goto(`${dashboard.address}/apis/${apiId}`);
      await page.getByRole("img", { name: "0 verifications in the last 36 hours" }).nth(15).waitFor();
      await settled(page);
      assert.deepEqual(calls, ["/dashboard/api/v2/analytics.listUsage"]);
    });

    /** The texts of the first cells of a column, as they are in the window. */
    const firstNames = (page: Page) =>
      page
        .locator("[data-index] a[title='Open as a page']")
        .evaluateAll((links) => links.map(({ textContent }) => textContent).slice(0, 3));

    it("are sorted by the service where they are long, and here where they are not", async () => {
      const page = await dashboard.visit(`/apis/${apiId}`);
      const header = (name: string) => page.getByRole("columnheader", { name });
      await header("Name").getByRole("button").click();
      await page.waitForURL(/order=name/);
      await eventuallyEqual(() => firstNames(page), ["key 000", "key 001", "key 002"]);
      await eventuallyEqual(() => header("Name").getAttribute("aria-sort"), "ascending");
      await header("Name").getByRole("button").click();
      await eventuallyEqual(() => firstNames(page), ["key 259", "key 258", "key 257"]);
      await eventuallyEqual(() => header("Name").getAttribute("aria-sort"), "descending");
      await page.reload();
      await eventuallyEqual(() => firstNames(page), ["key 259", "key 258", "key 257"]);
      await header("Name").getByRole("button").click();
      await page.waitForURL((url) => !url.searchParams.has("order"));
      await eventuallyEqual(() => header("Name").getAttribute("aria-sort"), "none");
      // The service cannot sort by owner, and not all keys are loaded.
      await eventuallyEqual(() => header("Owner").getByRole("button").count(), 0);

      for (const name of ["zebra", "Ant", "bee"]) await dashboard.ok("apis.createApi", { name });
      await page.goto(`${dashboard.address}/apis`);
      const apis = () =>
        page.locator("[data-index]").evaluateAll((rows) => rows.map((row) => row.querySelector("a")?.textContent));
      await header("Name").getByRole("button").click();
      await eventuallyEqual(apis, ["Ant", "bee", "payments", "zebra"]);
      await header("Name").getByRole("button").click();
      await eventuallyEqual(apis, ["zebra", "payments", "bee", "Ant"]);
      await isAccessible(page);
    });

    it("step to the next row of a panel in the order that is shown", async () => {
      for (const name of ["zebra", "Ant", "bee"]) {
        await dashboard.ok("rootKeys.createRootKey", { name, permissions: ["system.*.read_status"] });
      }
      const page = await dashboard.visit("/root-keys");
      await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
      const names = () =>
        page
          .getByRole("table", { name: "Root keys" })
          .locator("[data-index] .truncate.font-medium")
          .evaluateAll((cells) => cells.map(({ textContent }) => textContent).filter((name) => name !== null));
      await eventually("the names are in order", async () => {
        const made = (await names()).filter((name) => ["zebra", "Ant", "bee"].includes(name));
        return made.join() === "Ant,bee,zebra";
      });
      const inOrder = await names();
      await page.locator("[data-index]", { hasText: inOrder[0]! }).first().click();
      for (const name of inOrder.slice(1)) {
        await page.getByRole("button", { name: "Next row" }).click();
        await page.getByRole("complementary", { name, exact: true }).waitFor();
      }
      await page.getByRole("button", { name: "Previous row" }).click();
      await page.getByRole("complementary", { name: inOrder.at(-2)!, exact: true }).waitFor();
    });

    it("are kept as views with a name, which the toolbar and Ctrl-K open, until they are deleted", async () => {
      const page = await dashboard.visit(`/apis/${apiId}?state=active&order=name`);
      await page.getByRole("button", { name: "Views" }).click();
      await page.getByRole("menuitem", { name: "Save this view…" }).click();
      const dialog = page.getByRole("dialog", { name: "Save this view" });
      await dialog.getByLabel("Name").fill("Active by name");
      await isAccessible(page);
      await dialog.getByLabel("Name").press("Enter");
      await page.getByRole("button", { name: "View: Active by name" }).waitFor();
      // A row that is open is no part of it.
      await page.locator("[data-index='0']").getByText("Active").click();
      await page.waitForURL(/key=/);
      await page.getByRole("button", { name: "View: Active by name" }).waitFor();

      await page.goto(`${dashboard.address}/apis/${apiId}`);
      await page.getByRole("button", { name: "Views" }).click();
      await page.getByRole("menuitem", { name: "Active by name" }).click();
      await page.waitForURL(/state=active&order=name/);
      await eventuallyEqual(() => firstNames(page), ["key 000", "key 001", "key 002"]);
      await page.goto(`${dashboard.address}/audit`);
      await page.getByRole("button", { name: "Views" }).click();
      await eventuallyEqual(() => page.getByRole("menuitem", { name: "Active by name" }).count(), 0);
      await page.goto(`${dashboard.address}/settings`);
      await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
      const results = await openPalette(page, "active by");
      await results.getByRole("menuitem", { name: /^Active by name/ }).click();
      await page.waitForURL(/state=active&order=name/);

      await page.getByRole("button", { name: "View: Active by name" }).click();
      await page.getByRole("menuitem", { name: "Delete the view “Active by name”" }).click();
      await page.getByRole("button", { name: "Views" }).waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByRole("button", { name: "View: Active by name" }).waitFor();
    });

    it("ignore views that this browser cannot have saved", async () => {
      const page = await dashboard.visit(`/apis/${apiId}`);
      await page.getByRole("button", { name: "Views" }).click();
      await page.getByRole("menuitem", { name: "Save this view…" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("good");
      await page.getByRole("dialog").getByLabel("Name").press("Enter");
      await page.getByRole("button", { name: "View: good" }).waitFor();
      const stored = await page.evaluate(() => {
        const name = Object.keys(localStorage).find((one) => one.startsWith("latchkey.views."));
        return name === undefined ? undefined : ([name, localStorage.getItem(name)] as [string, string]);
      });
      const [name, text] = stored!;
      const open = async (value: string) => {
        await page.evaluate(([name, value]) => localStorage.setItem(name!, value!), [name, value]);
        await page.reload();
        await page.getByRole("button", { name: /^Views?/ }).click();
        await page.getByRole("menuitem", { name: "Save this view…" }).waitFor();
        return page.getByRole("menuitem").allTextContents();
      };
      assert.deepEqual(await open("no JSON"), ["Save this view…"]);
      const bad = [
        null,
        { name: 1, address: `/apis/${apiId}` },
        { name: "elsewhere", address: "//evil.example/" },
        { name: "script", address: "javascript:alert(1)" },
        { name: "x".repeat(61), address: `/apis/${apiId}` },
        { name: "long", address: `/apis/${apiId}?q=${"x".repeat(2_000)}` },
        { name: "", address: `/apis/${apiId}` },
      ];
      const all = [...bad, ...JSON.parse(text)];
      const shown = await open(JSON.stringify(all));
      assert.deepEqual(
        shown.map((entry) => entry.replace("chosen", "")),
        ["good", "Save this view…", "Delete the view “good”"],
      );
      const many = Array.from({ length: 60 }, (_, index) => ({
        name: `view ${index}`,
        address: `/apis/${apiId}?q=${index}`,
      }));
      assert.equal((await open(JSON.stringify(many))).length, 50 + 1);
      await page.getByRole("menuitem", { name: "Save this view…" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("more");
      await page.getByText("This browser keeps 50 views. Delete one first.").waitFor();
    });

    it("list deleted keys, and restore them", async () => {
      const { apiId } = await dashboard.ok("apis.createApi", { name: "restorable" });
      for (const name of ["kept", "lost", "gone"]) {
        const { keyId } = await dashboard.ok("keys.createKey", { apiId, name, externalId: "acme" });
        if (name !== "kept") await dashboard.ok("keys.deleteKey", { keyId });
      }
      const page = await dashboard.visit(`/apis/${apiId}`);
      await page.getByText("1 key", { exact: true }).waitFor();
      await page.getByRole("button", { name: "State" }).click();
      await page.getByRole("menuitem", { name: "Deleted" }).click();
      await page.getByText("2 of 2 deleted keys").waitFor();
      await eventuallyEqual(() => firstNames(page), ["gone", "lost"]);
      // What can be done with many keys can be done with keys that are not deleted.
      await eventuallyEqual(() => page.getByRole("checkbox").count(), 0);
      await isAccessible(page);
      await page.getByRole("button", { name: "Restore lost" }).click();
      await page.getByText("Restored lost.").waitFor();
      await eventuallyEqual(() => firstNames(page), ["gone"]);
      await page.locator("[data-index='0']").getByRole("cell").nth(3).click();
      const panel = page.getByRole("complementary", { name: "gone" });
      await panel.getByRole("button", { name: "Restore gone" }).click();
      await panel.getByRole("button", { name: "Disable" }).waitFor();
      await page.getByText("No key matches these filters").waitFor();
      assert.deepEqual(await dashboard.ok("apis.countKeys", { apiId }), { count: 3, isComplete: true });
    });

    it("are one stop of the Tab key, whose arrow keys, Home and End move between rows", async () => {
      const page = await dashboard.visit(`/apis/${apiId}`);
      await page.locator("[data-index='12']").waitFor();
      const focused = () =>
        page.evaluate(() => {
          const row = document.activeElement?.closest<HTMLElement>("[data-index]");
          return [row?.dataset.index, document.activeElement === row];
        });
      const table = page.getByRole("table");
      const row = (index: number) => table.locator(`[data-index='${index}']`);
      await page.getByRole("columnheader", { name: "Created" }).getByRole("button").press("Tab");
      await eventuallyEqual(focused, ["0", true]);
      await pressIn(row(0), "ArrowDown");
      await pressIn(row(1), "ArrowDown");
      await eventuallyEqual(focused, ["2", true]);
      // Tab goes through the controls of this row, and then leaves the table.
      const visited: unknown[] = [];
      for (let presses = 0; presses < 6; presses++) {
        await pressIn(table, "Tab");
        const [index] = await focused();
        if (index === undefined) break;
        visited.push(index);
      }
      assert.deepEqual(visited, ["2", "2", "2"], "the box, the name and the owner");
      await pressIn(page.locator("body"), "Shift+Tab");
      await pressIn(row(2), "End");
      await eventuallyPasses(focused, ([index, isRow]) => assert.ok(isRow && Number(index) >= 99, String(index)));
      await pressIn(table, "Home");
      await eventuallyEqual(focused, ["0", true]);
    });

    it("change all rows that match, loaded or not, stopped and continued", async () => {
      const { apiId: own } = await dashboard.ok("apis.createApi", { name: "many" });
      for (let index = 0; index < 230; index++) {
        await dashboard.ok("keys.createKey", {
          apiId: own,
          name: `many ${index}`,
          externalId: index ? "acme" : "globex",
        });
      }
      const count = async (state: string) =>
        (await dashboard.ok("apis.countKeys", { apiId: own, state })).count as number;
      const page = await dashboard.visit(`/apis/${own}?owner=acme`);
      await page.getByRole("checkbox", { name: "Select all that are loaded" }).click();
      await page.getByText("100 selected").waitFor();
      await page.getByRole("button", { name: "Select all 229 that match" }).click();
      await page.getByText("229 selected").waitFor();
      // The answer of the second call is lost, and the page says what it knows.
      const keysOfCalls = new Map<string, Set<string | undefined>>();
      let areAnswersLost = true;
      await page.route("**/v2/apis.updateKeys", async (route) => {
        const body = route.request().postData() ?? "";
        const keys = keysOfCalls.get(body) ?? new Set();
        keysOfCalls.set(body, keys.add(route.request().headers()["idempotency-key"]));
        if (!areAnswersLost || !body.includes("cursor")) return route.continue();
        await route.fetch();
        return route.abort();
      });
      await page.getByRole("button", { name: "Disable", exact: true }).click();
      await page.getByText("100 keys disabled, 0 keys failed, 129 keys not touched.").waitFor();
      await isAccessible(page);
      assert.equal(await count("disabled"), 200);
      areAnswersLost = false;
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByText("229 keys disabled.").waitFor();
      assert.deepEqual([await count("disabled"), await count("active")], [229, 1]);
      // Repeated calls have the key of the first one, so that credits would be added once.
      assert.deepEqual(
        [...keysOfCalls.values()].map((keys) => [keys.size, keys.has(undefined)]),
        Array(3).fill([1, false]),
      );

      await page.getByRole("checkbox", { name: "Select all that are loaded" }).click();
      await page.getByRole("button", { name: "Select all 229 that match" }).click();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.getByLabel("Type 229 to confirm").fill("229");
      await page.getByRole("button", { name: "Delete 229 keys" }).click();
      await page.getByText("229 keys deleted.").waitFor();
      assert.deepEqual(await count("active"), 1);
      assert.deepEqual(await count("disabled"), 0);
    });

    it("are saved as CSV with all their pages, as are charts", async () => {
      for (let index = 0; index < 130; index++) {
        await dashboard.ok("identities.createIdentity", {
          externalId: `-owner-${index}`,
          meta: { plan: 'a "b", c' },
        });
      }
      const saved = async (page: Page, label: string) => {
        const [download] = await Promise.all([
          page.waitForEvent("download"),
          page.getByRole("button", { name: `CSV of ${label}` }).click(),
        ]);
        return { name: download.suggestedFilename(), lines: readFileSync(await download.path(), "utf8").split("\r\n") };
      };
      const page = await dashboard.visit("/identities?q=owner");
      const list = await saved(page, "Identities");
      assert.equal(list.name, "identities.csv");
      assert.equal(list.lines[0], "id,externalId,meta,ratelimits");
      assert.equal(list.lines.length, 132, "a header, 130 rows, and the end of the last line");
      assert.match(list.lines[1] ?? "", /^id_\w+,'-owner-0,"\{""plan"":""a \\""b\\"", c""\}",\[\]$/);
      await page.goto(`${dashboard.address}/analytics?range=24h`);
      const chart = await saved(page, "Verifications by code");
      assert.equal(chart.lines[0], "time,VALID");
      assert.equal(chart.lines.length, 1 + 24 + 1);
      assert.match(chart.lines[1] ?? "", /^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z,0$/);
    });

    it("are where they were after Back", async () => {
      const page = await dashboard.visit(`/apis/${apiId}`);
      const row = page.getByRole("row").filter({ has: page.locator("a[title='Open as a page']") });
      await row.first().waitFor();
      // Page by page, as a person scrolls.
      for (let pages = 0; (await page.evaluate(() => scrollY)) < 6_000; pages++) {
        assert.ok(pages < 60, "the list ends");
        await page.mouse.wheel(0, 600);
        await settled(page);
      }
      const before = await page.evaluate(() => scrollY);
      await page.locator("a[title='Open as a page']").nth(10).click();
      await page.waitForURL(/\/keys\//);
      await page.getByRole("link", { name: "Open in the analytics" }).waitFor();
      await settled(page);
      await page.goBack();
      await row.first().waitFor();
      await settled(page);
      await eventuallyEqual(() => page.evaluate(() => scrollY), before);
      // Also from a page that was reloaded, whose list has only its first page at first.
      await page.locator("a[title='Open as a page']").nth(10).click();
      await page.waitForURL(/\/keys\//);
      await page.reload();
      await page.getByRole("link", { name: "Open in the analytics" }).waitFor();
      await page.goBack();
      await page.waitForFunction((y) => scrollY === y, before);
    });
  },
  ["sqlite"],
);
