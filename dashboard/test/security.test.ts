/** What attackers try through a browser: texts that are HTML, pages of other sites, and looking for secrets left behind. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, it } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { eventually, ROOT_KEY } from "../../server/test/process.ts";
import { describeDashboard, describeOnEachStore, settled, signIn } from "./dashboard.ts";
import { eventuallyEqual, eventuallyWithout, openPalette } from "./waiting.ts";

const HOSTILE = "<img src=x onerror=globalThis.executed=1>";
const HOUR = 3_600_000;

describeDashboard(
  "hostile texts",
  (dashboard) => {
    /** An administrator of a workspace in which every text is hostile. */
    let rootKey: string;
    let apiId: string;
    let keyId: string;
    let identityId: string;
    let namespaceId: string;

    before(async () => {
      rootKey = (await dashboard.ok("workspaces.createWorkspace", { name: HOSTILE })).key;
      // biome-ignore lint/suspicious/noExplicitAny: as of the operation.
      const ok = (operation: string, body: unknown): Promise<any> => dashboard.server.ok(operation, body, rootKey);
      ({ apiId } = await ok("apis.createApi", { name: HOSTILE }));
      await ok("permissions.createPermission", { name: HOSTILE, slug: "documents.read", description: HOSTILE });
      await ok("permissions.createRole", { name: HOSTILE, description: HOSTILE, permissions: ["documents.read"] });
      ({ identityId } = await ok("identities.createIdentity", { externalId: "hostile", meta: { [HOSTILE]: HOSTILE } }));
      const key = await ok("keys.createKey", {
        apiId,
        name: HOSTILE,
        externalId: "hostile",
        roles: [HOSTILE],
        meta: { [HOSTILE]: HOSTILE },
        ratelimits: [{ name: HOSTILE, limit: 10, duration: HOUR, autoApply: true }],
      });
      keyId = key.keyId;
      await ok("rootKeys.createRootKey", { name: HOSTILE, permissions: ["apis.*.read_api"] });
      for (let call = 0; call < 3; call++) {
        await ok("keys.verifyKey", { key: key.key, tags: [HOSTILE] });
        await ok("ratelimits.limit", { namespace: HOSTILE, identifier: HOSTILE, limit: 2, duration: HOUR });
      }
      await ok("ratelimits.setOverride", { namespace: HOSTILE, identifier: HOSTILE, limit: 1, duration: HOUR });
      const namespaces = await ok("ratelimits.listNamespaces", {});
      namespaceId = namespaces[0].id;
      const end = Math.ceil(Date.now() / HOUR) * HOUR;
      await eventually("the calls to be in the analytics", async () => {
        const keys = await ok("analytics.getApiStats", { apiId, start: end - 2 * HOUR, end });
        const limits = await ok("analytics.getRatelimitStats", { namespace: HOSTILE, start: end - 2 * HOUR, end });
        return keys.total === 3 && limits.total === 3;
      });
    });

    const pages: Record<string, { path: () => string; as?: string; act?: (page: Page) => Promise<void> }> = {
      overview: { path: () => "/" },
      APIs: { path: () => "/apis" },
      keys: { path: () => `/apis/${apiId}` },
      "the panel of a key": { path: () => `/apis/${apiId}?key=${keyId}` },
      "the page of a key": { path: () => `/apis/${apiId}/keys/${keyId}` },
      "the dialog of a new key": {
        path: () => `/apis/${apiId}`,
        act: (page) => page.getByRole("button", { name: "Create key" }).click(),
      },
      "the dialog that deletes an API": {
        path: () => `/apis/${apiId}`,
        act: async (page) => {
          await page.getByRole("button", { name: "More" }).click();
          await page.getByRole("menuitem", { name: "Delete the API…" }).click();
        },
      },
      "the palette": {
        path: () => "/settings",
        act: async (page) => {
          await openPalette(page, "<img");
          await page.getByRole("dialog").getByText(HOSTILE).first().waitFor();
        },
      },
      "analytics by key": { path: () => "/analytics?range=24h&by=key" },
      "analytics of an owner, with tags": { path: () => "/analytics?range=24h&owner=hostile" },
      "an identity": { path: () => `/identities/${identityId}` },
      namespaces: { path: () => "/ratelimits" },
      "a namespace": { path: () => `/ratelimits/${namespaceId}` },
      roles: { path: () => "/roles" },
      audit: {
        path: () => "/audit",
        act: async (page) => {
          await page.getByRole("row").filter({ hasText: "apis.createApi" }).click();
          await page.getByRole("complementary").waitFor();
        },
      },
      "root keys": { path: () => "/root-keys" },
      settings: { path: () => "/settings" },
      welcome: { path: () => "/welcome" },
      identities: { path: () => "/identities" },
      workspaces: { path: () => "/workspaces", as: ROOT_KEY },
      "the dialog that changes a workspace": {
        path: () => "/workspaces",
        as: ROOT_KEY,
        act: async (page) => {
          await page.getByRole("button", { name: `Edit ${HOSTILE}` }).click();
          await page.getByRole("dialog").waitFor();
        },
      },
      "the dialog that deletes keys": {
        path: () => `/apis/${apiId}`,
        act: async (page) => {
          await page.locator('[data-index="0"] label').first().click();
          await page.getByRole("toolbar").getByRole("button", { name: "Delete…" }).click();
          await page.getByRole("dialog").waitFor();
        },
      },
      "the dry run of an import": {
        path: () => `/apis/${apiId}`,
        act: async (page) => {
          await page.getByRole("button", { name: "Import…" }).click();
          await page.getByLabel("Or paste").fill(`key,name,roles\nsome_secret_key,${HOSTILE},${HOSTILE}`);
          await page.getByRole("button", { name: "Check them" }).click();
          await page
            .getByRole("button", { name: /^Import 1/ })
            .or(page.getByRole("alert"))
            .first()
            .waitFor();
        },
      },
      "the dialog of a role": {
        path: () => "/roles",
        act: async (page) => {
          await page.getByRole("button", { name: "Actions of the role" }).click();
          await page.getByRole("menuitem", { name: "Edit the role…" }).click();
          await page.getByRole("dialog").waitFor();
        },
      },
      "the dialog of a new root key": {
        path: () => "/root-keys",
        act: async (page) => {
          await page.getByRole("button", { name: "Create root key" }).first().click();
          await page
            .getByRole("dialog")
            .getByRole("combobox")
            .selectOption({ label: `Only ${HOSTILE}` });
        },
      },
      "the tester of limits, with an override": {
        path: () => `/ratelimits/${namespaceId}`,
        act: async (page) => {
          await page.getByRole("button", { name: `Delete the override of ${HOSTILE}` }).click();
          await page.getByRole("dialog").waitFor();
        },
      },
      "a search for it": {
        path: () => `/apis/${apiId}?q=${encodeURIComponent(HOSTILE)}&owner=${encodeURIComponent(HOSTILE)}`,
      },
    };
    for (const [name, { path, as, act }] of Object.entries(pages)) {
      it(`are text: ${name}`, async () => {
        const page = await dashboard.visit(path(), { as: as ?? rootKey });
        await settled(page);
        await act?.(page);
        await settled(page);
        const found = await page.evaluate((hostile) => {
          const shown = [
            ...[...document.querySelectorAll("input")].map(({ value }) => value),
            ...[...document.querySelectorAll("option")].map(({ text }) => text),
            // The name of the workspace is above every page.
            ...[...document.querySelectorAll<HTMLElement>("main, [role=dialog]")].map(({ innerText }) => innerText),
          ];
          return {
            executed: "executed" in globalThis,
            images: document.querySelectorAll('img[src="x"]').length,
            isShown: shown.some((text) => text.includes(hostile)),
          };
        }, HOSTILE);
        assert.deepEqual(found, { executed: false, images: 0, isShown: true });
      });
    }
  },
  ["sqlite"],
);

describeDashboard(
  "other sites",
  (dashboard) => {
    let site: Server;
    let html = "";

    // Another site than 127.0.0.1. A page of no server could not call this machine at all.
    before(async () => {
      site = createServer((_, response) => {
        response.setHeader("content-type", "text/html").end(`<!doctype html><title>other</title>${html}`);
      });
      await new Promise<void>((resolve) => site.listen(0, "localhost", resolve));
    });
    after(() => site.close());

    /** A page of the other site, in a browser that is signed in. */
    async function visitFromElsewhere(content: string): Promise<Page> {
      html = content;
      const page = await dashboard.visit("/apis");
      await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`);
      return page;
    }

    it("cannot show the dashboard in a frame", async () => {
      const page = await visitFromElsewhere(`<iframe src="${dashboard.address}/apis"></iframe>`);
      const [frame, ...more] = page.frames().slice(1);
      await eventually("the frame to be answered", async () => frame!.url() !== "");
      assert.deepEqual([frame?.url(), more.length], ["chrome-error://chromewebdata/", 0]);
      dashboard.forgetComplaints();
    });

    it("cannot change anything: forms and scripts are sent without the session and are rejected", async () => {
      const name = "made by another site";
      const call = `${dashboard.address}/dashboard/api/v2/apis.createApi`;
      const body = JSON.stringify({ name });
      const page = await visitFromElsewhere(
        `<form method="post" enctype="text/plain" action="${call}">
           <input name='${body.slice(0, -1)},"x":"' value='"}'>
         </form>`,
      );
      const statuses: number[] = [];
      page.on("response", (response) => {
        if (response.url() === call) statuses.push(response.status());
      });
      await page.evaluate(
        async ({ call, body }) => {
          await fetch(call, { method: "POST", mode: "no-cors", credentials: "include", body });
          const json = { "content-type": "application/json" };
          await fetch(call, { method: "POST", credentials: "include", headers: json, body }).catch(() => {});
        },
        { call, body },
      );
      await page.evaluate(() => document.forms[0]!.submit());
      await page.waitForURL(call);
      assert.ok(statuses.length >= 2 && statuses.every((status) => status >= 400), String(statuses));
      const apis = await dashboard.ok("apis.listApis", { search: name });
      assert.deepEqual(apis, []);
      dashboard.forgetComplaints();
    });

    it("are never where one returns to after signing in", async () => {
      const targets = [
        "//example.com/",
        "https://example.com/",
        "/\\example.com",
        "\\\\example.com",
        "/\t/example.com",
        "/%2f/example.com",
        "/.//example.com",
        "javascript:globalThis.executed=1",
        "data:text/html,<script>globalThis.executed=1</script>",
        `${dashboard.address}@example.com/`,
      ];
      const page = await dashboard.visit("/sign-in", { as: null });
      for (const target of targets) {
        await page.context().clearCookies();
        await page.goto(`${dashboard.address}/sign-in?return=${encodeURIComponent(target)}`);
        await signIn(page, ROOT_KEY);
        await page.waitForURL((url) => url.pathname !== "/sign-in");
        await settled(page);
        assert.equal(new URL(page.url()).origin, dashboard.address, target);
        await eventuallyEqual(() => page.evaluate(() => "executed" in globalThis), false, target);
      }
    });

    it("cannot plant a session: signing in replaces the cookie that was there", async () => {
      const planted = "A".repeat(43);
      const page = await dashboard.visit("/sign-in", { as: null });
      await page
        .context()
        .addCookies([{ name: "latchkey_session", value: planted, domain: "127.0.0.1", path: "/dashboard" }]);
      await signIn(page, ROOT_KEY);
      await page.waitForURL((url) => url.pathname !== "/sign-in");
      const cookies = await sessionCookies(page.context());
      assert.equal(cookies.length, 1);
      assert.notEqual(cookies[0], planted);
    });
  },
  ["sqlite"],
);

describeOnEachStore("secrets", (dashboard) => {
  it("are in no address, storage, history or log after a key was created, verified, searched and deleted", async () => {
    const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
    const page = await dashboard.visit("/sign-in", { as: null });
    const addresses: string[] = [];
    page.on("request", (request) => addresses.push(request.url(), request.headers().referer ?? ""));
    page.on("framenavigated", (frame) => addresses.push(frame.url()));
    await signIn(page, ROOT_KEY);
    await page.waitForURL((url) => url.pathname !== "/sign-in");

    await page.goto(`${dashboard.address}/apis/${apiId}`);
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    const key = (await page.locator("[data-secret]").textContent())!;
    await page.getByRole("button", { name: "Verify it now" }).click();
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    await page.getByText("VALID", { exact: true }).waitFor();
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("searchbox", { name: "Search keys" }).fill(key);
    await page.waitForURL((url) => url.searchParams.has("key"));

    await page.goto(`${dashboard.address}/root-keys`);
    await page.getByRole("button", { name: "Create root key" }).first().click();
    await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("temporary");
    await page.getByRole("dialog").getByRole("switch").first().check({ force: true });
    await page.getByRole("dialog").getByRole("button", { name: "Create root key" }).click();
    const made = (await page.locator("[data-secret]").textContent())!;
    assert.match(made, /^lk_root_/);
    await page.getByRole("button", { name: "I have stored it" }).click();
    await settled(page);

    const cookies = await sessionCookies(page.context());
    const kept = await page.evaluate(async () =>
      JSON.stringify([
        { ...localStorage },
        { ...sessionStorage },
        document.cookie,
        history.state,
        name,
        await indexedDB.databases(),
        await caches.keys(),
        document.documentElement.outerHTML,
      ]),
    );
    const seen = { addresses: addresses.join("\n"), kept, log: dashboard.server.output };
    for (const [where, text] of Object.entries(seen)) {
      assert.ok(text.length > 0);
      for (const secret of [ROOT_KEY, key, made, ...cookies]) {
        assert.ok(!text.includes(secret), `${secret.slice(0, 8)}… is in ${where}`);
      }
    }
    // Going back shows nothing of it.
    for (let step = 0; step < 4; step++) {
      await page.goBack();
      await settled(page);
      for (const secret of [ROOT_KEY, key, made]) await eventuallyWithout(page, secret);
    }
  });
});

async function sessionCookies(context: BrowserContext): Promise<string[]> {
  const cookies = await context.cookies();
  return cookies.filter(({ name }) => name === "latchkey_session").map(({ value }) => value);
}
