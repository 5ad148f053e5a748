import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnEachStore } from "./dashboard.ts";

const WITHIN_MS = 5_000;

describeOnEachStore("a second window", (dashboard) => {
  it("learns of what others change within five seconds, and reads only that again", async () => {
    const page = await dashboard.visit("/roles");
    await page.getByRole("heading", { name: "Roles", level: 1 }).waitFor();
    const asked: string[] = [];
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith("/dashboard/api/v2/")) asked.push(pathname.slice("/dashboard/api/v2/".length));
    });
    // The window waits for changes by now.
    await page.waitForRequest((request) => request.url().includes("/dashboard/changes?after="));
    await dashboard.ok("permissions.createRole", { name: "auditor" });
    const from = performance.now();
    await page.getByText("auditor").first().waitFor();
    assert(performance.now() - from < WITHIN_MS * 4, "a busy machine takes longer, but not that long");
    assert(asked.includes("permissions.listRoles"));
    assert(!asked.some((name) => name.startsWith("keys.") || name.startsWith("ratelimits.")), asked.join());
  });

  it("continues after a restart of the service", async () => {
    const page = await dashboard.visit("/apis");
    await page.waitForRequest((request) => request.url().includes("/dashboard/changes?after="));
    await dashboard.restart();
    await dashboard.ok("apis.createApi", { name: "after the restart" });
    await page.getByText("after the restart").first().waitFor();
  });
});
