import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe } from "node:test";
import type { Browser, BrowserContext, Cookie, Locator, Page, Request } from "playwright-core";
import { ROOT_KEY, run, type Server, start } from "../../server/test/process.ts";
import { type FreshDatabase, freshDatabase } from "../../server/test/services/postgres.ts";
import { launchChromium } from "./chromium.ts";
import { eventuallyEqual, eventuallyPasses } from "./waiting.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TIMEOUT_MS = 60_000;
/** How many times slower the pages run than the machine could: what a test does too early fails then. Default: 1. */
const slowdown = Number(process.env.LATCHKEY_TEST_SLOWDOWN ?? 1);

export const stores = ["sqlite", "postgres"] as const;
export type StoreKind = (typeof stores)[number];

/** How a page is opened. */
export interface OpenOptions {
  width?: number;
  height?: number;
  scheme?: "light" | "dark";
  /** The root key that signs in; null: nobody does. Default: the administrator's of the workspace. */
  as?: string | null;
  /** The language of the browser. */
  locale?: string;
  timeZone?: string;
  /** The cookies of a session that exists, instead of signing in. */
  cookies?: Cookie[];
}

/** A running service with its dashboard, and a browser. Everything that a test opens is closed at its end. */
export class Dashboard {
  server!: Server;
  #browser!: Browser;
  #database: FreshDatabase | undefined;
  #settings: Record<string, string> = {};
  #contexts: BrowserContext[] = [];
  /** What the browser complained about: errors of scripts, violations of the policy of the page. */
  #complaints: string[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), "latchkey-dashboard-"));
  readonly #store: StoreKind;
  readonly #demoKeys: number;
  /** The root key that signs in and calls: the service's administrator, or that of the workspace of the demo. */
  #rootKey = ROOT_KEY;

  constructor(store: StoreKind, demoKeys = 0) {
    this.#store = store;
    this.#demoKeys = demoKeys;
  }

  async open(): Promise<void> {
    if (this.#store === "postgres") this.#database = await freshDatabase();
    this.#settings = {
      VAULT_KEY: Buffer.alloc(32, 7).toString("base64"),
      WEBHOOK_ALLOW_PRIVATE: "yes",
      ...(this.#database ? { DATABASE_URL: this.#database.url } : { BACKUP_EVERY: "6h" }),
    };
    if (this.#demoKeys > 0) {
      const settings = { ...this.#settings, DATA_DIR: join(this.#folder, "data"), ROOT_KEY };
      const demo = await run(["demo", "--json", "--keys", String(this.#demoKeys)], {
        directory: this.#folder,
        settings,
      });
      if (demo.code !== 0) throw new Error(`latchkey demo failed: ${demo.output}`);
      this.#rootKey = JSON.parse(demo.stdout).rootKey;
    }
    this.server = await start({ directory: this.#folder, settings: this.#settings });
    this.#browser = await launchChromium();
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.server.kill("SIGTERM");
    await this.#database?.drop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Stops the service as an upgrade does, and starts it again at the same address. */
  async restart(): Promise<void> {
    const { port } = new URL(this.address);
    await this.server.kill("SIGTERM");
    this.server = await start({ directory: this.#folder, settings: this.#settings, args: ["--port", port] });
  }

  /** The address of the dashboard. */
  get address(): string {
    return this.server.address;
  }

  /** The `data` of a call that succeeds, as the administrator of the workspace. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
  ok(operation: string, body: unknown): Promise<any> {
    return this.server.ok(operation, body, this.#rootKey);
  }

  /** The token of a new one-time link. */
  async linkToken(): Promise<string> {
    const settings = { ...this.#settings, DATA_DIR: join(this.#folder, "data"), ROOT_KEY };
    const { code, stdout, stderr } = await run(["sign-in-link"], { directory: this.#folder, settings });
    const token = /#link=(\S+)/.exec(stdout)?.[1];
    if (code !== 0 || token === undefined) throw new Error(`There is no link: ${stdout}${stderr}`);
    return token;
  }

  /** Opens a path in a browser of its own, signed in as an administrator. */
  async visit(
    path: string,
    {
      width = 1440,
      height = 900,
      scheme = "light",
      locale = "en-GB",
      timeZone = "Europe/Berlin",
      as = this.#rootKey,
      cookies,
    }: OpenOptions = {},
  ): Promise<Page> {
    const context = await this.#browser.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      locale,
      timezoneId: timeZone,
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"],
      acceptDownloads: true,
    });
    this.#contexts.push(context);
    context.setDefaultTimeout(TIMEOUT_MS);
    const page = await context.newPage();
    countRequests(page);
    if (slowdown > 1) {
      const session = await context.newCDPSession(page);
      await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
    }
    page.on("pageerror", ({ message }) => this.#complaints.push(message));
    page.on("console", (message) => {
      // The browser reports each answer with an error status; the page shows those itself.
      const isAnswer = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isAnswer) this.#complaints.push(message.text());
    });
    if (cookies) await context.addCookies(cookies);
    else if (as !== null) await this.#signIn(context, as);
    await page.goto(this.address + path);
    return page;
  }

  /** Gives the browser a session of its own. The form does the same in 1.5 s; its tests are in `sign-in.test.ts`. */
  async #signIn(context: BrowserContext, rootKey: string): Promise<void> {
    const headers = { Origin: this.address };
    const answer = await context.request.post(`${this.address}/dashboard/session`, { headers, data: { rootKey } });
    assert.ok(answer.ok(), await answer.text());
  }

  /** For a test in which the browser has to complain. */
  forgetComplaints(): void {
    this.#complaints.length = 0;
  }

  /** Closes what the test opened; fails if the browser complained. */
  async endTest(): Promise<void> {
    await Promise.all(this.#contexts.splice(0).map((context) => context.close()));
    assert.deepEqual(this.#complaints.splice(0), []);
  }
}

/** Fills and sends the form of the page to sign in. */
export async function signIn(page: Page, rootKey: string): Promise<void> {
  await page.getByLabel("Root key").fill(rootKey);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/**
 * Tests of the dashboard: one service and one browser for all of them. What a page shows and sends does not depend on the
 * database, and the server's tests try each operation on both. With `demoKeys` they are in the workspace that
 * `latchkey demo` fills with so many keys.
 */
export function describeDashboard(
  name: string,
  tests: (dashboard: Dashboard, store: StoreKind) => void,
  kinds: readonly StoreKind[] = ["sqlite"],
  demoKeys = 0,
): void {
  // What a test does too early does not depend on the database.
  for (const store of slowdown > 1 ? kinds.slice(0, 1) : kinds) {
    describe(`${name} (${store})`, () => {
      const dashboard = new Dashboard(store, demoKeys);
      before(() => dashboard.open());
      after(() => dashboard.close());
      afterEach(() => dashboard.endTest());
      tests(dashboard, store);
    });
  }
}

/**
 * Tests of what the database does for the dashboard: search, filters and paging, sums, changes in bulk, the feed of changes,
 * sessions, the first start.
 */
export function describeOnEachStore(name: string, tests: (dashboard: Dashboard, store: StoreKind) => void): void {
  describeDashboard(name, tests, stores);
}

/** Fails if axe finds a violation on the page once it has settled, with each rule and the elements that violate it. */
export async function isAccessible(page: Page, what = "the page"): Promise<void> {
  await settled(page);
  // A script element would violate the policy of the page.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
    const { violations } = await axe.run();
    return violations.map(({ id, help, nodes }) => ({ id, help, where: nodes.slice(0, 3).map(({ html }) => html) }));
  });
  assert.deepEqual({ what, found }, { what, found: [] });
}

interface Violation {
  id: string;
  help: string;
  nodes: { html: string }[];
}

/**
 * Scrolls a part of a page into view until its content is there, which is loaded when it is seen. What is loaded above the part
 * can move it out of view again.
 */
export async function reveal(part: Locator, content: Locator): Promise<void> {
  const hasCome = () =>
    content.waitFor({ timeout: 1_000 }).then(
      () => true,
      () => false,
    );
  for (let attempts = 0; attempts < 60; attempts++) {
    // In the middle, so that what is below a heading is in the window too.
    await part.evaluate((element) => element.scrollIntoView({ block: "center" }));
    if (await hasCome()) return;
  }
  await content.waitFor({ timeout: 1 });
}

/** What each page waits for. */
const requestsOf = new WeakMap<Page, Set<Request>>();

function countRequests(page: Page): void {
  const requests = new Set<Request>();
  requestsOf.set(page, requests);
  page.on("request", (request) => {
    // The service answers this one when something changes.
    if (!request.url().includes("/dashboard/changes")) requests.add(request);
  });
  // A call whose answer is not read, because only its status is wanted, does not finish.
  page.on("response", (response) => {
    if (response.request().resourceType() === "fetch") requests.delete(response.request());
  });
  page.on("requestfinished", (request) => requests.delete(request));
  page.on("requestfailed", (request) => requests.delete(request));
}

/** What an answer shows can load more, some of it after a pause. */
const QUIET_MS = 200;

/**
 * Waits until nothing is loaded any more, and what moves has moved. The state `networkidle` is no help: a document reaches it
 * once, whatever it loads later.
 */
export async function settled(page: Page): Promise<void> {
  const pending = () => [...(requestsOf.get(page) ?? [])].map((request) => request.url());
  const loading = async () => {
    if (pending().length > 0) return pending();
    await page.evaluate(async (ms) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      await Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => {})));
    }, QUIET_MS);
    return pending();
  };
  await page.waitForLoadState();
  await eventuallyEqual(loading, []);
}

/** Fails if a page is wider than its window once it has settled. */
export async function fitsWindow(page: Page, what = "the page"): Promise<void> {
  await settled(page);
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await eventuallyPasses(overflow, (pixels) =>
    assert.ok(pixels <= 0, `${what} is ${pixels} pixels wider than the window`),
  );
}
