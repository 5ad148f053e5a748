/** Endpoints that accept nothing: what they make the service store, and that nothing is lost once they work. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { PENDING_UNPROVEN_MAX } from "../../src/features/webhooks/statements/backlog.ts";
import { insertEvents, type NewEvent } from "../../src/platform/store/events/events.ts";
import { ROW_BYTES } from "../../src/platform/store/quotas/workspace-bytes.ts";
import { describeOnStores, type TestServer, VAULT_KEY } from "../harness.ts";
import { assertOrder, passDelivering, WebhookReceiver } from "../webhook-receiver.ts";

const MINUTE = 60_000;
const DEAD = 6;
/** Together more than the deliveries that such an endpoint gets. */
const OBJECTS = 20;
const EACH = 20;

/** Writes events of objects as changes do: one of each object after the other. Returns the ids of the objects. */
async function makeEvents(server: TestServer, objects: number, each: number): Promise<string[]> {
  const ids = Array.from({ length: objects }, (_, i) => `key_${++made}_${i}`);
  const events = Array.from({ length: each * objects }, (_, i) => {
    const keyId = ids[i % objects]!;
    const data = { keyId, apiId: "api_1", changed: ["name"], actor: "system" };
    const { workspaceId } = server;
    return { id: `evt_${made}_${i}`, workspaceId, type: "key.updated", objectId: keyId, at: server.clock.now(), data };
  });
  await server.change([], (sql) => insertEvents(sql, events as NewEvent[]));
  return ids;
}
let made = 0;

describeOnStores(
  "dead endpoints",
  (server) => {
    const show = (webhookId: string) => server.ok("webhooks.getWebhook", { webhookId });
    const create = async (endpoint: string) =>
      (await server.ok("webhooks.createWebhook", { endpoint, eventTypes: ["key.updated"] })).webhookId;
    const eventsOf = async (types: readonly string[]) =>
      ((await server.rowsOf("events")) as { id: string; number: number; type: string }[])
        .filter(({ type }) => types.includes(type))
        .sort((a, b) => Number(a.number) - Number(b.number))
        .map(({ id }) => id);

    it("take a row for each of some deliveries, and then a position", async (t) => {
      const receiver = await WebhookReceiver.open(t);
      receiver.answer = () => 500;
      const webhookIds = [];
      for (let i = 0; i < DEAD; i++) webhookIds.push(await create(receiver.url));
      await makeEvents(server, OBJECTS, EACH);
      await passDelivering(server, 1_000);
      const rows = (await server.rowsOf("webhook_deliveries")).length;
      assert(rows <= DEAD * (PENDING_UNPROVEN_MAX + 1), `${rows} rows`);
      // They count against the bytes of the workspace.
      const sums = (await server.rowsOf("workspace_bytes")) as { kind: string; bytes: number }[];
      const bytes = sums.filter(({ kind }) => kind === "events").reduce((sum, one) => sum + Number(one.bytes), 0);
      assert(bytes >= rows * ROW_BYTES.delivery, `${bytes} bytes`);
      for (const webhookId of webhookIds) assert.notEqual((await show(webhookId)).behindSince, undefined);
      // A test is sent although others wait.
      const { eventId } = await server.ok("webhooks.sendTest", { webhookId: webhookIds[0] });
      await passDelivering(server, 2_500);
      assert(receiver.received.some(({ id }) => id === eventId));

      // One works again: it gets everything, in the order of each object.
      for (const webhookId of webhookIds.slice(1)) await server.ok("webhooks.deleteWebhook", { webhookId });
      receiver.answer = () => 200;
      receiver.received.length = 0;
      for (let i = 0; i < 60 && (await show(webhookIds[0])).pending > 0; i++) await passDelivering(server, 2_500);
      const { pending, behindSince, dead } = await show(webhookIds[0]);
      assert.deepEqual({ pending, behindSince, dead }, { pending: 0, behindSince: undefined, dead: 0 });
      const got = receiver.received.filter(({ event }) => event.type !== "webhook.test");
      assertOrder(got, ({ data }) => data.keyId as string, await eventsOf(["key.updated"]));
      assert.equal(new Set(got.map(({ id }) => id)).size, OBJECTS * EACH);
      await server.ok("webhooks.deleteWebhook", { webhookId: webhookIds[0] });
    });

    it("that refuse one object get the events of the others", async (t) => {
      const receiver = await WebhookReceiver.open(t);
      receiver.answer = () => 500;
      const webhookId = await create(receiver.url);
      const [refused] = await makeEvents(server, 1, PENDING_UNPROVEN_MAX + 20);
      receiver.answer = ({ event }) => (event.data.keyId === refused ? 500 : 200);
      await passDelivering(server, 1_000);
      assert.notEqual((await show(webhookId)).behindSince, undefined);
      const [accepted] = await makeEvents(server, 1, 1);
      for (let i = 0; i < 30 && !receiver.received.some(({ event }) => event.data.keyId === accepted); i++) {
        server.clock.step(MINUTE);
        await passDelivering(server, 1_000);
      }
      assert(receiver.received.some(({ event }) => event.data.keyId === accepted));
      await server.ok("webhooks.deleteWebhook", { webhookId });
    });

    it("get what waited before they were disabled, and not what happened meanwhile", async (t) => {
      const receiver = await WebhookReceiver.open(t);
      receiver.answer = () => 500;
      const webhookId = await create(receiver.url);
      const before = await makeEvents(server, PENDING_UNPROVEN_MAX / 10 + 5, 10);
      await passDelivering(server, 1_000);
      assert.notEqual((await show(webhookId)).behindSince, undefined);
      await server.ok("webhooks.updateWebhook", { webhookId, enabled: false });
      const meanwhile = await makeEvents(server, 5, 1);
      await passDelivering(server, 1_000);
      await server.ok("webhooks.updateWebhook", { webhookId, enabled: true });
      const after = await makeEvents(server, 5, 1);
      receiver.answer = () => 200;
      receiver.received.length = 0;
      for (let i = 0; i < 60 && receiver.received.length < before.length * 10 + 5; i++)
        await passDelivering(server, 2_500);
      const got = new Set(receiver.received.map(({ event }) => event.data.keyId));
      assert(before.every((id) => got.has(id)) && after.every((id) => got.has(id)));
      assert(!meanwhile.some((id) => got.has(id)));
      assert.equal((await show(webhookId)).behindSince, undefined);
    });
  },
  { WEBHOOK_ALLOW_PRIVATE: "yes", VAULT_KEY },
);
