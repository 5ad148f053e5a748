import assert from "node:assert/strict";
import { before, it } from "node:test";
import type { Page } from "playwright-core";
import { type Dashboard, describeDashboard } from "./dashboard.ts";
import { DEMO_KEYS, demoPlaces } from "./demo-places.ts";

const MAX = 200_000;
/** Of the files of the dashboard. What remains is for data, which is more or less with other keys. */
const CODE_MAX = 193_000;

describeDashboard(
  "the first load of each page, with its data,",
  (dashboard) => {
    let paths: Record<string, string>;

    before(async () => {
      const { api, key, identity, budget, plan, namespace, webhook } = await demoPlaces(dashboard);
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
        "/budgets": "/budgets",
        "/budgets/$budgetId": budget,
        "/plans": "/plans",
        "/plans/$planId": plan,
        "/ratelimits": "/ratelimits",
        "/ratelimits/$namespaceId": namespace,
        "/roles": "/roles",
        "/audit": "/audit",
        "/decisions": "/decisions",
        "/events": "/events",
        "/webhooks": "/webhooks",
        "/webhooks/$webhookId": webhook,
        "/root-keys": "/root-keys",
        "/workspaces": "/workspaces",
        "/settings": "/settings",
      };
    });

    it(`transfers at most ${MAX / 1_000} kB, ${CODE_MAX / 1_000} kB of them code, all from this service`, async (t) => {
      const over: Record<string, Load> = {};
      for (const [route, path] of Object.entries(paths)) {
        const load = await firstLoad(dashboard, path);
        const { code, data, others } = load;
        t.diagnostic(`${route}: ${kilobytes(code)} kB of code, ${kilobytes(data)} kB of data`);
        assert.ok(code > 50_000, `${route} transferred only ${code} bytes of code`);
        assert.deepEqual(others, [], route);
        if (code > CODE_MAX || code + data > MAX) over[route] = load;
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

interface Load {
  /** The bytes of the files of the dashboard, headers included. */
  code: number;
  /** The bytes of the page and of the answers, headers included. */
  data: number;
  /** The addresses of other services. */
  others: string[];
}

/** What a browser with an empty cache receives for a page. */
async function firstLoad(dashboard: Dashboard, path: string): Promise<Load> {
  const page = await dashboard.visit("/apis");
  await page.goto("about:blank");
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.clearBrowserCache");
  const load: Load = { code: 0, data: 0, others: [] };
  /** The addresses of the requests without an answer. */
  const pending = new Map<string, string>();
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    if (!request.url.startsWith(dashboard.address)) load.others.push(request.url);
    pending.set(requestId, new URL(request.url).pathname);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    load[pending.get(requestId)?.startsWith("/assets/") ? "code" : "data"] += encodedDataLength;
    pending.delete(requestId);
  });
  session.on("Network.loadingFailed", ({ requestId }) => pending.delete(requestId));
  await page.goto(dashboard.address + path);
  // Twice: what was rendered at the end of the first time may ask for more.
  for (let times = 0; times < 2; ) {
    await shown(page);
    // An answer comes when something has changed.
    const isComplete = [...pending.values()].every((path) => path === "/dashboard/changes");
    times = isComplete ? times + 1 : 0;
  }
  await page.context().close();
  return load;
}

/** Waits until no skeleton is in the window and the browser has nothing to do. */
async function shown(page: Page): Promise<void> {
  await page.waitForFunction(
    () =>
      document.querySelector("h1") !== null &&
      ![...document.querySelectorAll(".skeleton")].some((element) => {
        const { top, bottom } = element.getBoundingClientRect();
        return top < innerHeight && bottom > 0;
      }),
  );
  await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
}

function kilobytes(bytes: number): string {
  return (bytes / 1_000).toFixed(1);
}
