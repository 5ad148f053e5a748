/** `examples/image-api`, as somebody runs it who has copied it: its document is applied, its program started. */
import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { CommandLine } from "./command-line.ts";
import { installLibraries } from "./guide.ts";
import { eventually, makeFolder, Program, ROOT_KEY, type Server, start } from "./process.ts";

const source = fileURLToPath(new URL("../../examples/image-api", import.meta.url));
const ORDER = { size: "large", color: "#6d5dfc", seed: "hello" };

describe("the example image-api", () => {
  const folder = makeFolder({ after });
  const commandLine = new CommandLine();
  let service: Server;
  let rootKey: string;
  let program: Program;
  let origin: string;

  before(async () => {
    cpSync(source, folder, { recursive: true });
    installLibraries(folder);
    service = await start({ directory: folder });
    const applied = await apply();
    assert.equal(applied.code, 0, applied.stderr);
    rootKey = /^ {2}(lk_root_\w+)$/m.exec(applied.stdout)![1]!;
    [program, origin] = await startProgram(rootKey);
  });
  after(async () => {
    await program?.kill("SIGTERM");
    await service?.kill("SIGTERM");
    await commandLine.close();
  });

  function apply() {
    const environment = { HOME: folder, LATCHKEY_URL: service.address, LATCHKEY_ROOT_KEY: ROOT_KEY };
    return commandLine.run({ args: ["apply", "-f", "latchkey.yaml"], environment, directory: folder });
  }

  async function startProgram(key: string, environment: Record<string, string> = {}): Promise<[Program, string]> {
    const settings = { LATCHKEY_URL: service.address, LATCHKEY_ROOT_KEY: key, PORT: "0", ...environment };
    const started = new Program([join(folder, "src/main.ts")], { directory: folder, environment: settings });
    let address: string | undefined;
    await eventually("the example to listen", () => {
      assert(!started.hasEnded, started.output);
      address = /Listening on (\S+)/.exec(started.stdout)?.[1];
      return address !== undefined;
    });
    return [started, address!];
  }

  /** A browser: it keeps the cookie, and does not follow redirects. */
  class Browser {
    #cookie = "";

    get(path: string): Promise<Response> {
      return this.#send(path, {});
    }

    post(path: string, form: Record<string, string> = {}, headers: Record<string, string> = { origin }) {
      return this.#send(path, { method: "POST", body: new URLSearchParams(form), headers });
    }

    /** The account page. */
    async account(): Promise<string> {
      const response = await this.get("/account");
      assert.equal(response.status, 200);
      return response.text();
    }

    async #send(path: string, init: RequestInit): Promise<Response> {
      const headers = { ...(init.headers as Record<string, string>), cookie: this.#cookie };
      const response = await fetch(origin + path, { ...init, headers, redirect: "manual" });
      const [set] = response.headers.getSetCookie();
      if (set !== undefined) this.#cookie = set.split(";")[0]!;
      return response;
    }
  }

  async function signUp(name = "Acme") {
    const browser = new Browser();
    const response = await browser.post("/signup", { name });
    const page = await response.text();
    assert.equal(response.status, 200, page);
    return { browser, key: keyIn(page), response };
  }

  function palette(key?: string): Promise<Response> {
    return fetch(`${origin}/v1/palettes?color=%236d5dfc`, { headers: key ? { authorization: `Bearer ${key}` } : {} });
  }

  function image(key: string, order: unknown = ORDER): Promise<Response> {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    return fetch(`${origin}/v1/images`, { method: "POST", headers, body: JSON.stringify(order) });
  }

  const keyIn = (page: string) => /<code>(img_\w+)<\/code>/.exec(page)![1]!;
  const balanceIn = (page: string) => Number(/id="balance">([\d,]+)</.exec(page)![1]!.replaceAll(",", ""));
  const hiddenIn = (page: string, name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)![1]!;
  /** The id of the newest key: its form is the last one. */
  const newestKeyIn = (page: string) => [...page.matchAll(/name="key" value="([^"]+)"/g)].at(-1)![1]!;

  it("is set up twice, and nothing is made twice", async () => {
    const again = await apply();
    assert.equal(again.code, 0, again.stderr);
    assert.doesNotMatch(again.stdout, /lk_root_/);
    assert.equal((await service.ok("apis.listApis", {})).length, 1);
    assert.equal((await service.ok("plans.listPlans", {})).length, 2);
  });

  it("has a root key that cannot do more than the program does", async () => {
    const apiId = (await service.ok("apis.listApis", {}))[0].id;
    for (const [operation, body] of Object.entries({
      "apis.createApi": { name: "other" },
      "apis.deleteApi": { apiId },
      "rootKeys.createRootKey": { name: "other", permissions: ["apis.*.read_api"] },
      "permissions.createPermission": { name: "other", slug: "other.read" },
    })) {
      const { status } = await service.call(operation, body, rootKey);
      assert.equal(status, 403, operation);
    }
  });

  it("answers 401 without a key, 200 with one, and charges the credits of the call", async () => {
    assert.equal((await palette()).status, 401);
    assert.equal((await palette("img_unknown")).status, 401);
    const { key, browser } = await signUp();
    const response = await palette(key);
    assert.equal(response.status, 200);
    const { palette: colors, credits } = (await response.json()) as { palette: string[]; credits: number };
    assert.equal(colors.length, 5);
    assert.equal(credits, 99);
    assert.equal(balanceIn(await browser.account()), 99);
    // What cannot be answered costs nothing.
    const invalid = await fetch(`${origin}/v1/palettes?color=blue`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(invalid.status, 400);
    assert.equal(balanceIn(await browser.account()), 99);
    await eventually("the usage on the page", async () => /1 credits in 2 requests/.test(await browser.account()));
  });

  it("answers 403 on the route of the pro plan until the customer upgrades, 402 without credits", async () => {
    const { key, browser } = await signUp();
    assert.equal((await image(key)).status, 403);
    assert.equal(balanceIn(await browser.account()), 100);

    const [first, second] = await Promise.all([browser.post("/account/upgrade"), browser.post("/account/upgrade")]);
    assert.deepEqual([first.status, second.status], [303, 303]);
    assert.equal(balanceIn(await browser.account()), 5_000);
    const drawn = await image(key);
    assert.equal(drawn.status, 200);
    assert.equal(drawn.headers.get("content-type"), "image/svg+xml");
    assert.match(await drawn.text(), /^<svg .*width="1024"/);
    await image(key, { ...ORDER, size: "small" });
    assert.equal(balanceIn(await browser.account()), 5_000 - 20 - 1);
    for (const order of [{ ...ORDER, size: "toString" }, { ...ORDER, seed: "x".repeat(65) }, [], "text"]) {
      assert.equal((await image(key, order)).status, 400);
    }
    assert.equal((await image(key, { ...ORDER, seed: "x".repeat(5_000) })).status, 413);
    assert.equal(balanceIn(await browser.account()), 5_000 - 20 - 1);

    await service.ok("keys.updateCredits", {
      keyId: newestKeyIn(await browser.account()),
      operation: "set",
      value: 19,
    });
    assert.equal((await image(key)).status, 402);
    assert.equal((await palette(key)).status, 200);
  });

  it("answers 429 at the limit of the plan", async () => {
    const { key } = await signUp();
    let calls = 0;
    let response: Response;
    do {
      response = await palette(key);
      calls++;
    } while (response.status === 200 && calls < 100);
    assert.equal(response.status, 429);
    // A window may begin in between.
    assert(calls > 30 && calls <= 61, `${calls} calls`);
    assert(Number(response.headers.get("retry-after")) > 0);
  });

  it("adds the credits of a payment once", async () => {
    const { browser } = await signUp();
    const page = await browser.account();
    const form = { payment: hiddenIn(page, "payment"), credits: "500" };
    const answers = await Promise.all([1, 2].map(() => browser.post("/account/payments", form)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [303, 303],
    );
    assert.equal(balanceIn(await browser.account()), 600);

    // By way of another key of the same balance.
    assert.equal((await browser.post("/account/rotate", { key: newestKeyIn(page), overlap: "day" })).status, 200);
    assert.equal((await browser.post("/account/payments", form)).status, 303);
    assert.equal(balanceIn(await browser.account()), 600);

    const another = { ...form, payment: hiddenIn(await browser.account(), "payment") };
    assert.equal((await browser.post("/account/payments", another)).status, 303);
    assert.equal(balanceIn(await browser.account()), 1_100);
    for (const invalid of [{ ...another, credits: "1000000" }, { ...another, payment: "x" }, {}]) {
      assert.equal((await browser.post("/account/payments", invalid)).status, 400);
    }
    assert.equal(balanceIn(await browser.account()), 1_100);
  });

  it("rotates a key: the old one works for a day, or ends at once", async () => {
    const { browser, key: first } = await signUp();
    const firstId = newestKeyIn(await browser.account());
    const rotated = await browser.post("/account/rotate", { key: firstId, overlap: "day" });
    assert.equal(rotated.headers.get("cache-control"), "no-store");
    const second = keyIn(await rotated.text());
    assert.deepEqual([(await palette(first)).status, (await palette(second)).status], [200, 200]);
    const secondId = newestKeyIn(await browser.account());

    // The form of the page before.
    assert.equal((await browser.post("/account/rotate", { key: firstId, overlap: "now" })).status, 409);
    const third = keyIn(await (await browser.post("/account/rotate", { key: secondId, overlap: "now" })).text());
    const statuses = async () => Promise.all([first, second, third].map(async (key) => (await palette(key)).status));
    assert.deepEqual(await statuses(), [200, 401, 200]);
    assert.equal((await browser.post("/account/end", { key: firstId })).status, 303);
    assert.deepEqual(await statuses(), [401, 401, 200]);
    assert.equal((await browser.post("/account/end", { key: newestKeyIn(await browser.account()) })).status, 404);

    for (let i = 0; i < 4; i++) {
      const form = { key: newestKeyIn(await browser.account()), overlap: "day" };
      assert.equal((await browser.post("/account/rotate", form)).status, 200);
    }
    const oneTooMany = { key: newestKeyIn(await browser.account()), overlap: "day" };
    assert.equal((await browser.post("/account/rotate", oneTooMany)).status, 409);
  });

  it("keeps customers apart", async () => {
    const { browser: owner, key } = await signUp("<b>Owner</b> & sons");
    const { browser: other, response } = await signUp("Other");
    assert.match(response.headers.getSetCookie()[0]!, /; HttpOnly; SameSite=Lax$/);
    const page = await owner.account();
    assert.match(page, /&lt;b&gt;Owner&lt;\/b&gt; &amp; sons/);
    assert.doesNotMatch(page, /<b>/);
    assert.doesNotMatch(await other.account(), /Owner/);

    const keyId = newestKeyIn(page);
    assert.equal((await other.post("/account/rotate", { key: keyId, overlap: "now" })).status, 409);
    assert.equal((await other.post("/account/end", { key: keyId })).status, 404);
    assert.equal((await palette(key)).status, 200);

    // Another site sends the form; nobody is signed in; the cookie was changed.
    const rotate = { key: keyId, overlap: "now" };
    assert.equal((await owner.post("/account/rotate", rotate, { origin: "https://evil.example" })).status, 403);
    assert.equal((await new Browser().post("/account/rotate", rotate)).status, 401);
    const anonymous = await new Browser().get("/account");
    assert.deepEqual([anonymous.status, anonymous.headers.get("location")], [303, "/"]);
    const { identity } = await service.ok("keys.getKey", { keyId });
    const forged = `session=${identity.externalId}.${Number.MAX_SAFE_INTEGER}.${"A".repeat(43)}%3D`;
    const refused = await fetch(`${origin}/account`, { headers: { cookie: forged }, redirect: "manual" });
    assert.equal(refused.status, 303);
    assert.equal((await palette(key)).status, 200);

    await owner.post("/signout");
    assert.equal((await owner.get("/account")).status, 303);
    assert.equal((await owner.post("/signin", { key: `${key}x` })).status, 401);
    assert.equal((await owner.post("/signin", { key })).status, 303);
    assert.match(await owner.account(), /Owner/);
  });

  it("keeps sessions over a restart, and sends cookies over HTTPS only in production", async (t) => {
    const { key } = await signUp();
    const settings = { SESSION_SECRET: "x".repeat(32), NODE_ENV: "production" };
    const [first, address] = await startProgram(rootKey, settings);
    t.after(() => first.kill("SIGKILL"));
    const signedIn = await fetch(`${address}/signin`, {
      method: "POST",
      body: new URLSearchParams({ key }),
      headers: { origin: address },
      redirect: "manual",
    });
    const [set] = signedIn.headers.getSetCookie();
    assert.match(set!, /; HttpOnly; Secure; SameSite=Lax$/);
    await first.kill("SIGTERM");

    const [second, next] = await startProgram(rootKey, settings);
    t.after(() => second.kill("SIGKILL"));
    const account = await fetch(`${next}/account`, { headers: { cookie: set!.split(";")[0]! }, redirect: "manual" });
    assert.equal(account.status, 200);
  });

  it("bounds what arrives at the page, and how often an address signs up", async () => {
    const browser = new Browser();
    const refusals = { "   ": 400, [`${"x".repeat(61)}`]: 400, [`${"x".repeat(5_000)}`]: 413 };
    for (const [name, status] of Object.entries(refusals)) {
      assert.equal((await browser.post("/signup", { name })).status, status);
    }
    let response: Response;
    let tries = 0;
    do response = await browser.post("/signup", { name: "Acme" });
    while (response.status === 200 && ++tries < 20);
    assert.equal(response.status, 429);
    assert.match(await response.text(), /Try again in an hour/);
    assert(Number(response.headers.get("retry-after")) > 0);
    const policy = response.headers.get("content-security-policy")!;
    assert.match(policy, /default-src 'none'/);
    assert.equal((await browser.get("/nothing")).status, 404);
    assert.equal((await fetch(`${origin}/v1/nothing`)).status, 404);
  });

  it("stops with a message if it cannot start", async () => {
    for (const [environment, message] of [
      [{ SESSION_SECRET: "short" }, /SESSION_SECRET is too short/],
      [{ LATCHKEY_ROOT_KEY: "lk_root_unknown" }, /apis\.listApis/],
    ] as const) {
      const settings = { LATCHKEY_URL: service.address, LATCHKEY_ROOT_KEY: rootKey, PORT: "0", ...environment };
      const ran = new Program([join(folder, "src/main.ts")], { directory: folder, environment: settings });
      assert.equal((await ran.ended).code, 1);
      assert.match(ran.stderr, message);
    }
  });

  it("needs the versions that this repository has", () => {
    const manifest = (path: string) => JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8"));
    const { dependencies, devDependencies } = manifest("examples/image-api/package.json");
    const { "@latchkey/sdk": _, ...used } = { ...dependencies, ...devDependencies };
    const present = { ...manifest("package.json").devDependencies, ...manifest("sdk/package.json").devDependencies };
    for (const [name, version] of Object.entries(used)) assert.equal(version, present[name], name);
  });
});
