import assert from "node:assert/strict";
import { before, it } from "node:test";
import type { Page } from "playwright-core";
import { ROOT_KEY } from "../../server/test/process.ts";
import { describeDashboard, isAccessible, signIn } from "./dashboard.ts";
import { eventuallyEqual, hasFocus } from "./waiting.ts";

describeDashboard(
  "away and back",
  (dashboard) => {
    let path: string;
    let keyId: string;

    before(async () => {
      const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
      ({ keyId } = await dashboard.ok("keys.createKey", { apiId, name: "before" }));
      path = `/apis/${apiId}/keys/${keyId}`;
    });

    it("keeps the page while the service does not answer, and goes on when it does", async () => {
      const page = await dashboard.visit("/apis");
      await page.getByText("Healthy").waitFor();
      await page.context().route("**/*", (route) => route.abort("connectionrefused"));
      await page.getByText("The service does not answer. Reconnecting…").waitFor();
      await page.getByText("No answer").waitFor();
      await isAccessible(page);
      await page.getByRole("link", { name: "Webhooks" }).click();
      await page.waitForURL(/\/webhooks$/);
      await page.getByText("Reconnecting…").waitFor();

      await page.context().unroute("**/*");
      await page.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
      await page.getByText("Reconnecting…").waitFor({ state: "detached" });
      await page.getByText("Healthy").waitFor();
      dashboard.forgetComplaints();
    });

    it("loads the code of a newer build", async () => {
      const page = await dashboard.visit("/apis");
      let isOld = true;
      page.on("request", (request) => {
        if (request.isNavigationRequest()) isOld = false;
      });
      await page
        .context()
        .route(/\/assets\/webhooks-.*\.js$/, (route) =>
          isOld ? route.fulfill({ status: 404, body: "" }) : route.continue(),
        );
      await page.getByRole("link", { name: "Webhooks" }).click();
      await page.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
      dashboard.forgetComplaints();
    });

    it("signs in again over the page, and keeps the edit", async () => {
      const page = await dashboard.visit(path);
      const rejected: string[] = [];
      page.on("response", (response) => {
        if (response.status() === 401) rejected.push(response.url());
      });
      const name = await editName(page, "kept");
      await page.evaluate(() => fetch("/dashboard/session", { method: "DELETE" }));
      await name.press("Enter");
      const window = page.getByRole("dialog", { name: "Your session has ended" });
      await window.getByLabel("Root key").waitFor();
      await isAccessible(page);
      await signIn(page, ROOT_KEY);
      await window.waitFor({ state: "detached" });
      await eventuallyEqual(() => name.inputValue(), "kept");
      assert.ok(rejected.length < 20, `${rejected.length} calls were made without a session`);
      await name.press("Enter");
      await page.getByRole("button", { name: "Edit the name" }).waitFor();
      assert.equal((await dashboard.ok("keys.getKey", { keyId })).name, "kept");
    });

    it("asks before an edit is lost", async () => {
      const page = await dashboard.visit(path);
      const name = await editName(page, "lost");
      const places = page.getByRole("navigation", { name: "Places" });
      await places.getByRole("link", { name: "Webhooks" }).click();
      const question = page.getByRole("dialog", { name: "Leave without saving" });
      await question.getByRole("button", { name: "Cancel" }).click();
      await eventuallyEqual(() => name.inputValue(), "lost");
      await places.getByRole("link", { name: "Webhooks" }).click();
      await question.getByRole("button", { name: "Discard and leave" }).click();
      await page.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
    });

    it("cancels an edit in place by Escape, saves it by Enter, and keeps the focus", async () => {
      const page = await dashboard.visit(path);
      const name = await editName(page, "by Enter");
      await name.press("Escape");
      const edit = page.getByRole("button", { name: "Edit the name" });
      await edit.waitFor();
      await hasFocus(edit);
      await (await editName(page, "by Enter")).press("Enter");
      await edit.waitFor();
      await hasFocus(edit);
      assert.equal((await dashboard.ok("keys.getKey", { keyId })).name, "by Enter");
    });
  },
  ["sqlite"],
);

/** Begins to edit the name, whose field has the focus then, and types a new one. */
async function editName(page: Page, text: string) {
  await page.getByRole("button", { name: "Edit the name" }).click();
  const name = page.getByLabel("Name", { exact: true });
  await hasFocus(name);
  await name.fill(text);
  return name;
}
