import assert from "node:assert/strict";
import { before, it } from "node:test";
import { type Dashboard, describeDashboard, settled } from "./dashboard.ts";
import { DEMO_KEYS, demoPlaces } from "./demo-places.ts";

const MAX = 200_000;

describeDashboard(
  "the first load of each page, with its data,",
  (dashboard) => {
    let paths: Record<string, string>;

    before(async () => {
      const { api, key, identity, namespace, webhook } = await demoPlaces(dashboard);
      paths = {
        "/sign-in": "/sign-in",
        "/": "/",
        "/analytics": "/analytics",
        "/welcome": "/welcome",
        "/apis": "/apis",
        "/apis/$apiId": api,
        "/apis/$apiId/settings": `${api}/settings`,
        "/apis/$apiId/keys/$keyId": key,
        "/identities": "/identities",
        "/identities/$identityId": identity,
        "/ratelimits": "/ratelimits",
        "/ratelimits/$namespaceId": namespace,
        "/roles": "/roles",
        "/audit": "/audit",
        "/events": "/events",
        "/webhooks": "/webhooks",
        "/webhooks/$webhookId": webhook,
        "/root-keys": "/root-keys",
        "/workspaces": "/workspaces",
        "/settings": "/settings",
      };
    });

    it(`transfers at most ${MAX / 1_000} kB, all from this service`, async (t) => {
      const over: Record<string, number> = {};
      for (const [route, path] of Object.entries(paths)) {
        const { bytes, others } = await firstLoad(dashboard, path);
        t.diagnostic(`${route}: ${(bytes / 1_000).toFixed(1)} kB`);
        assert.ok(bytes > 50_000, `${route} transferred only ${bytes} bytes`);
        assert.deepEqual(others, [], route);
        if (bytes > MAX) over[route] = bytes;
      }
      assert.deepEqual(over, {});
    });

    it("is of every route", async () => {
      const page = await dashboard.visit("/sign-in", { as: null });
      const scripts = await page.evaluate(() =>
        performance.getEntriesByType("resource").flatMap(({ name }) => (name.endsWith(".js") ? [name] : [])),
      );
      const sources = await Promise.all(scripts.map(async (url) => (await fetch(url)).text()));
      const routes = sources.flatMap((source) =>
        [...source.matchAll(/\bpath:\s*["'`](\/[^"'`]*)["'`]/g)].map((found) => found[1]!),
      );
      assert.deepEqual([...new Set(routes)].sort(), Object.keys(paths).sort());
    });
  },
  ["sqlite"],
  DEMO_KEYS,
);

/** The bytes that a browser with an empty cache receives for a page, headers included, and the addresses of other services. */
async function firstLoad(dashboard: Dashboard, path: string): Promise<{ bytes: number; others: string[] }> {
  const page = await dashboard.visit("/apis");
  await page.goto("about:blank");
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.clearBrowserCache");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  const others: string[] = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(dashboard.address)) others.push(request.url());
  });
  await page.goto(dashboard.address + path);
  await settled(page);
  await page.context().close();
  return { bytes, others };
}
