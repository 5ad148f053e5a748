import assert from "node:assert/strict";
import { it } from "node:test";
import { Webhook } from "standardwebhooks";
import { eventually } from "../../server/test/process.ts";
import { type Received, WebhookReceiver } from "../../server/test/webhook-receiver.ts";
import { describeDashboard, isAccessible } from "./dashboard.ts";
import { eventuallyEqual, eventuallyWithout } from "./waiting.ts";

describeDashboard("webhooks", (dashboard) => {
  const one = (of: string) => dashboard.ok("webhooks.listWebhooks", {}).then((all) => all.find(named(of)));
  const named = (of: string) => (webhook: { name?: string }) => webhook.name === of;

  it("creates a webhook, shows its secret once, and shows what came of a test", async (t) => {
    const receiver = await WebhookReceiver.open(t);
    const page = await dashboard.visit("/webhooks");
    await page.getByText("No webhooks yet").waitFor();
    await page.getByRole("button", { name: "Create webhook" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Endpoint").fill("ftp://example.com");
    await dialog.getByText("Enter a URL that begins with https://.").waitFor();
    await dialog.getByLabel("Endpoint").fill(receiver.url);
    await dialog.getByLabel("Name").fill("billing");
    await dialog.getByRole("button", { name: "Only these types" }).click();
    await dialog.getByRole("checkbox", { name: "Credits", exact: true }).check();
    await dialog.getByRole("checkbox", { name: "credits.refilled" }).uncheck();
    await dialog.getByRole("checkbox", { name: "key.created", exact: true }).check();
    await dialog.getByRole("button", { name: "Create webhook" }).click();
    const secret = (await page.locator("[data-secret]").textContent())!;
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.locator("[data-secret]").waitFor({ state: "detached" });
    await eventuallyWithout(page, secret);
    const created = await one("billing");
    assert.deepEqual(created.eventTypes.toSorted(), ["credits.low", "key.created"]);
    await page.waitForURL((url) => url.pathname === `/webhooks/${created.webhookId}`);

    await page.getByRole("button", { name: "Send a test" }).click();
    const panel = page.getByRole("complementary", { name: "webhook.test" });
    await panel.getByText("Delivered", { exact: true }).first().waitFor();
    await panel.getByText('"type": "webhook.test"').waitFor();
    await page.getByRole("row").filter({ hasText: "webhook.test" }).getByText("200").waitFor();
    assert.equal(receiver.received.length, 1);
    verify(secret, receiver.received[0]!);

    await page.getByRole("button", { name: "More about this webhook" }).click();
    await page.getByRole("menuitem", { name: "Rotate the secret…" }).click();
    await page.getByRole("button", { name: "Rotate secret" }).click();
    const next = (await page.locator("[data-secret]").textContent())!;
    await page.getByRole("button", { name: "I have stored it" }).click();
    assert.notEqual(next, secret);
    await panel.getByRole("button", { name: "Send again" }).click();
    await eventually("the delivery is repeated", () => receiver.received.length === 2);
    for (const valid of [secret, next]) verify(valid, receiver.received[1]!);

    await page.getByRole("button", { name: "Edit…" }).click();
    await dialog.getByRole("textbox", { name: "Name" }).fill("billing of today");
    await dialog.getByRole("button", { name: "All types" }).click();
    await dialog.getByRole("button", { name: "Save webhook" }).click();
    await page.getByRole("heading", { name: "billing of today", level: 1 }).waitFor();
    const { name, eventTypes } = await dashboard.ok("webhooks.getWebhook", { webhookId: created.webhookId });
    assert.deepEqual({ name, eventTypes }, { name: "billing of today", eventTypes: undefined });
    await dashboard.ok("webhooks.deleteWebhook", { webhookId: created.webhookId });
  });

  it("says why a webhook is disabled, enables it, and sends dead letters again", async (t) => {
    const receiver = await WebhookReceiver.open(t);
    receiver.answer = () => 410;
    const { webhookId } = await dashboard.ok("webhooks.createWebhook", {
      endpoint: receiver.url,
      name: "gone",
      eventTypes: ["identity.created"],
    });
    await dashboard.ok("identities.createIdentity", { externalId: "acme" });
    // Without an API the overview is the page of the first steps.
    await dashboard.ok("apis.createApi", { name: "payments" });
    await eventually("the webhook is disabled", async () => !(await one("gone")).enabled);

    const page = await dashboard.visit("/");
    await page.getByText("1 webhook disabled, because the endpoint failed").click();
    await page.getByText("1 webhook with events that were given up").click();
    await page.getByRole("link", { name: "gone" }).last().click();
    await page.waitForURL((url) => url.pathname === `/webhooks/${webhookId}` && url.searchParams.has("status", "dead"));
    await page.getByText("The endpoint answered 410").waitFor();
    const again = page.getByRole("button", { name: "Send it again" });
    await eventuallyEqual(() => again.getAttribute("aria-disabled"), "true");
    receiver.answer = () => 204;
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByText("Enabled the webhook gone.").waitFor();
    await again.click();
    await page.getByText("No delivery is in the state “Dead”").waitFor();
    await page.getByRole("button", { name: "Remove the filter State" }).click();
    await page.getByRole("row").filter({ hasText: "identity.created" }).getByText("204").waitFor();
    assert.equal(receiver.received.length, 2);

    await page.getByRole("button", { name: "More about this webhook" }).click();
    await page.getByRole("menuitem", { name: "Disable" }).click();
    await page.getByText("A call disabled it.").waitFor();
    await page.getByRole("button", { name: "More about this webhook" }).click();
    await page.getByRole("menuitem", { name: "Delete…" }).click();
    await page.getByLabel("Type gone to confirm").fill("gone");
    await page.getByRole("button", { name: "Delete webhook" }).click();
    await page.getByText("Deleted the webhook gone.").waitFor();
    assert.equal(await one("gone"), undefined);
  });

  it("says what the root key may not do", async () => {
    const webhook = { endpoint: "https://receiver.invalid/", name: "kept", eventTypes: ["key.created"] };
    const { webhookId } = await dashboard.ok("webhooks.createWebhook", webhook);
    const { key } = await dashboard.ok("rootKeys.createRootKey", {
      name: "reader",
      permissions: ["webhooks.*.read_webhook"],
    });
    const page = await dashboard.visit("/webhooks", { as: key });
    await page.getByRole("row").filter({ hasText: "kept" }).click();
    await page.waitForURL((url) => url.pathname === `/webhooks/${webhookId}`);
    for (const name of ["Send a test", "Edit…"]) {
      await eventuallyEqual(() => page.getByRole("button", { name }).getAttribute("aria-disabled"), "true");
    }
    await page.getByRole("button", { name: "Edit…" }).focus();
    await page.getByText(`The root key lacks the permission webhooks.${webhookId}.update_webhook`).waitFor();
    const { key: none } = await dashboard.ok("rootKeys.createRootKey", {
      name: "none",
      permissions: ["apis.*.read_api"],
    });
    const other = await dashboard.visit("/webhooks", { as: none });
    await other.getByText("webhooks.*.read_webhook").waitFor();
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`is accessible (${scheme})`, async () => {
      const { webhookId } = await one("kept");
      await dashboard.ok("webhooks.updateWebhook", { webhookId, enabled: false });
      for (const path of ["/webhooks", `/webhooks/${webhookId}`]) {
        const page = await dashboard.visit(path, { scheme });
        await page.getByText("Disabled").first().waitFor();
        await isAccessible(page);
        await page.getByRole("button", { name: path === "/webhooks" ? "Create webhook" : "Edit…" }).click();
        await page.getByRole("button", { name: "Only these types" }).click();
        await isAccessible(page);
      }
    });
  }
});

function verify(secret: string, { body, headers }: Received): void {
  new Webhook(secret).verify(body, headers as Record<string, string>);
}
