import assert from "node:assert/strict";
import { it } from "node:test";
import { ROOT_KEY } from "../../server/test/process.ts";
import { describeOnEachStore, isAccessible, settled, signIn } from "./dashboard.ts";
import { eventuallyWithout } from "./waiting.ts";

describeOnEachStore("signing in", (dashboard) => {
  it("exchanges a root key for a session, and leaves it nowhere", async () => {
    const page = await dashboard.visit("/apis", { as: null });
    await page.waitForURL(/\/sign-in\?return=/);
    await signIn(page, ROOT_KEY);
    await page.getByRole("heading", { name: "APIs", exact: true }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/apis");
    const stored = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
    );
    assert.ok(!stored.includes(ROOT_KEY));
    await eventuallyWithout(page, ROOT_KEY);
    const [cookie] = await page.context().cookies();
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, "Strict"]);
    assert.notEqual(cookie?.value, ROOT_KEY);
  });

  it("says why a root key was rejected, with the id of the request", async () => {
    const page = await dashboard.visit("/sign-in", { as: null });
    await signIn(page, "lk_root_that_nobody_issued");
    const alert = page.getByRole("alert");
    await alert.getByText(/^req_/).waitFor();
    assert.equal(new URL(page.url()).pathname, "/sign-in");
  });

  it("returns to the page that was asked for, and to no other origin", async () => {
    for (const [to, expected] of [
      ["/apis?q=x", "/apis?q=x"],
      ["//example.com/", "/"],
      ["https://example.com/", "/"],
      ["/\\example.com", "/"],
    ] as const) {
      const page = await dashboard.visit(`/sign-in?return=${encodeURIComponent(to)}`, { as: null });
      await signIn(page, ROOT_KEY);
      await page.waitForURL((url) => url.pathname !== "/sign-in");
      const { origin, pathname, search } = new URL(page.url());
      assert.equal(origin, dashboard.address);
      if (expected !== "/") assert.equal(pathname + search, expected);
    }
  });

  it("leads to the first key while there is no API, and names the ways to sign in", async () => {
    const page = await dashboard.visit("/sign-in", { as: null });
    await page.getByText("latchkey sign-in-link").waitFor();
    await signIn(page, ROOT_KEY);
    await page.getByRole("heading", { name: "Your first key" }).waitFor();
    const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
    const again = await dashboard.visit("/sign-in", { as: null });
    await signIn(again, ROOT_KEY);
    await again.waitForURL((url) => url.pathname === "/");
    await dashboard.ok("apis.deleteApi", { apiId });
  });

  it("signs in by a one-time link, once, and removes it from the address", async () => {
    const token = await dashboard.linkToken();
    const page = await dashboard.visit(`/#link=${token}`, { as: null });
    await page.getByRole("heading", { name: "Your first key" }).waitFor();
    assert.ok(!page.url().includes(token));
    await page.goBack().catch(() => null);
    assert.ok(!page.url().includes(token));
    const again = await dashboard.visit(`/#link=${token}`, { as: null });
    await again.getByRole("alert").waitFor();
    assert.ok(!again.url().includes(token));
  });

  it("loads at most 200 kB for the first page, all from this service", async () => {
    const page = await dashboard.visit("/sign-in", { as: null });
    await settled(page);
    const loaded = await page.evaluate(() =>
      performance
        .getEntries()
        .flatMap((entry) =>
          "encodedBodySize" in entry ? [{ name: entry.name, bytes: Number(entry.encodedBodySize) }] : [],
        ),
    );
    const bytes = loaded.reduce((sum, entry) => sum + entry.bytes, 0);
    assert.ok(bytes > 50_000 && bytes < 200_000, `${bytes} bytes`);
    assert.ok(loaded.every(({ name }) => name.startsWith(dashboard.address)));
  });

  it("ends the session", async () => {
    const page = await dashboard.visit("/apis");
    await page.getByRole("button", { name: /^Session of/ }).click();
    // An entry that is a link fills its line as one that is not.
    const boxes = await page.getByRole("menuitem").evaluateAll((items) =>
      items.map((item) => {
        const { left, width, height } = item.getBoundingClientRect();
        return { left, width, height };
      }),
    );
    assert.deepEqual(boxes, Array(boxes.length).fill(boxes[0]));
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.waitForURL(/\/sign-in/);
    await page.goto(`${dashboard.address}/apis`);
    await page.waitForURL(/\/sign-in/);
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const page = await dashboard.visit("/sign-in", { as: null, scheme });
      await isAccessible(page);
    });
  }
});
