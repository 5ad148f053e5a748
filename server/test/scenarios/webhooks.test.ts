import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { describe, it, mock } from "node:test";
import { Webhook } from "standardwebhooks";
import { describeOnStores, openTestServer, stores, type TestServer, VAULT_KEY } from "../harness.ts";
import { eventually } from "../process.ts";
import { assertOrder, jump, passDelivering, type Received, settle, WebhookReceiver } from "../webhook-receiver.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const settings = { WEBHOOK_ALLOW_PRIVATE: "yes", VAULT_KEY };

describeOnStores(
  "webhooks",
  (server) => {
    const create = (receiver: WebhookReceiver, more: object = {}) =>
      server.ok("webhooks.createWebhook", { endpoint: receiver.url, ...more }) as Promise<{
        webhookId: string;
        secret: string;
      }>;
    const show = (webhookId: string) => server.ok("webhooks.getWebhook", { webhookId });
    const deliveries = (webhookId: string, more: object = {}) =>
      server.ok("webhooks.listDeliveries", { webhookId, ...more });

    /** A receiver with a webhook, which is deleted at the end of the test. */
    async function openWebhook(t: { after(undo: () => void | Promise<void>): void }, more: object = {}) {
      const receiver = await WebhookReceiver.open(t);
      const { webhookId, secret } = await create(receiver, more);
      t.after(() => server.call("webhooks.deleteWebhook", { webhookId }).then(() => {}));
      return { receiver, webhookId, secret };
    }

    it("sends events with a signature that receivers verify by the reference library", async (t) => {
      const { receiver, secret, webhookId } = await openWebhook(t);
      const apiId = await server.createApi("Documents");
      await passDelivering(server, 1_000);
      assert.deepEqual(receiver.types, ["webhook.created", "api.created"]);
      const [, created] = receiver.received as [Received, Received];
      verify(secret, created);
      assert.throws(() => verify(secret, { ...created, body: created.body.replace("Documents", "Other") }));
      const [listed] = await server.ok("events.listEvents", { objectId: apiId });
      const { createdAt, ...rest } = listed;
      assert.deepEqual(created.event, { ...rest, timestamp: new Date(createdAt).toISOString() });
      assert.equal(created.id, listed.id);
      assert.equal(created.headers["content-type"], "application/json");
      const [latest] = await deliveries(webhookId);
      assert.deepEqual(
        { ...latest, createdAt: 0, completedAt: 0, lastAttempt: { ...latest.lastAttempt, at: 0, duration: 0 } },
        {
          eventId: listed.id,
          type: "api.created",
          objectId: apiId,
          status: "delivered",
          attempts: 1,
          createdAt: 0,
          completedAt: 0,
          lastAttempt: { at: 0, duration: 0, status: 200 },
        },
      );
      assert.equal((await show(webhookId)).pending, 0);
    });

    it("stores no secret in plain text, and returns it once", async (t) => {
      const { secret, webhookId } = await openWebhook(t);
      assert.match(secret, /^whsec_/);
      for (const table of ["webhooks", "events", "audit_events", "webhook_deliveries"] as const) {
        assert(!JSON.stringify(await server.rowsOf(table)).includes(secret.slice("whsec_".length)), table);
      }
      assert(!JSON.stringify(await show(webhookId)).includes("whsec_"));
    });

    it("sends everything after the endpoint failed for a minute, in the order of each object", async (t) => {
      const { receiver, webhookId } = await openWebhook(t, {
        eventTypes: ["key.created", "key.updated", "key.deleted"],
      });
      receiver.answer = () => 500;
      const apiId = await server.createApi();
      const expected: string[] = [];
      for (let i = 0; i < 4; i++) {
        const { keyId } = await server.createKey(apiId);
        for (const name of ["a", "b"]) {
          await server.ok("keys.updateKey", { keyId, name });
          await passDelivering(server, 2_000);
        }
        await server.ok("keys.deleteKey", { keyId });
        expected.push(
          ...(await server.ok("events.listEvents", { objectId: keyId })).map(({ id }: { id: string }) => id),
        );
      }
      await passDelivering(server, MINUTE - 16_000);
      assert.equal((await show(webhookId)).pending, 16);
      assert.notEqual((await show(webhookId)).failingSince, undefined);
      // Only the first event of each object was tried.
      assert.equal(new Set(receiver.received.map(({ id }) => id)).size, 4);
      receiver.answer = () => 200;
      receiver.received.length = 0;
      await passDelivering(server, 2 * MINUTE);
      assertOrder(receiver.received, ({ data }) => data.keyId as string, expected);
      assert.equal(receiver.received.length, 16);
      const { pending, failingSince } = await show(webhookId);
      assert.deepEqual({ pending, failingSince }, { pending: 0, failingSince: undefined });
    });

    it("sends only the types and APIs that it is for", async (t) => {
      const apiId = await server.createApi();
      const other = await server.createApi();
      const ofTypes = await openWebhook(t, { eventTypes: ["key.created", "role.created"] });
      const ofApis = await openWebhook(t, { apiIds: [apiId] });
      await server.createKey(apiId);
      await server.createKey(other);
      await server.createRole(`editor ${server.clock.now()}`);
      await server.ok("apis.updateApi", { apiId, name: "renamed" });
      await passDelivering(server, 1_000);
      assert.deepEqual(ofTypes.receiver.types.sort(), ["key.created", "key.created", "role.created"]);
      assert.deepEqual(ofApis.receiver.types.sort(), ["api.updated", "key.created"]);
      await server.ok("webhooks.updateWebhook", { webhookId: ofTypes.webhookId, eventTypes: ["key.deleted"] });
      const { keyId } = await server.createKey(apiId);
      await server.ok("keys.deleteKey", { keyId });
      await passDelivering(server, 1_000);
      assert.deepEqual(ofTypes.receiver.types.slice(3), ["key.deleted"]);
      const error = await server.call("webhooks.createWebhook", {
        endpoint: ofTypes.receiver.url,
        apiIds: ["api_never0existed000"],
      });
      assert.equal(error.problem, "api_not_found");
      const { webhookId } = ofApis;
      await server.rejected("webhooks.updateWebhook", { webhookId, apiIds: ["api_never0existed000"] }, "api_not_found");
    });

    it("signs by both secrets while the secret rotates", async (t) => {
      const { receiver, webhookId, secret } = await openWebhook(t, { eventTypes: ["api.created"] });
      const rotated = await server.ok("webhooks.rotateSecret", { webhookId, expiration: HOUR });
      assert.notEqual(rotated.secret, secret);
      assert.equal((await show(webhookId)).previousSecretExpires, server.clock.now() + HOUR);
      await server.createApi();
      await passDelivering(server, 1_000);
      verify(secret, receiver.received[0]!);
      verify(rotated.secret, receiver.received[0]!);
      await jump(server, HOUR);
      await server.createApi();
      await passDelivering(server, 1_000);
      verify(rotated.secret, receiver.received[1]!);
      assert.throws(() => verify(secret, receiver.received[1]!));
      assert.equal((await show(webhookId)).previousSecretExpires, undefined);
      const again = await server.ok("webhooks.rotateSecret", { webhookId, expiration: 0 });
      await server.createApi();
      await passDelivering(server, 1_000);
      assert.throws(() => verify(rotated.secret, receiver.received[2]!));
      verify(again.secret, receiver.received[2]!);
    });

    it("gives up after three days, disables a webhook that failed all the time, and sends dead letters again", async (t) => {
      const { receiver, webhookId } = await openWebhook(t, { eventTypes: ["api.created", "api.updated"] });
      receiver.answer = () => 503;
      const apiId = await server.createApi();
      await server.ok("apis.updateApi", { apiId, name: "renamed" });
      await passDelivering(server, 1_000);
      for (let i = 0; i < 20; i++) await jump(server, 4 * HOUR);
      const webhook = await show(webhookId);
      assert.equal(webhook.enabled, false);
      assert.equal(webhook.disabled.reason, "failing");
      assert.equal(webhook.disabled.at - webhook.failingSince > 2 * DAY, true);
      assert.equal(webhook.pending, 1);
      const dead = await deliveries(webhookId, { status: "dead" });
      assert.deepEqual(
        dead.map(({ type, lastAttempt }: { type: string; lastAttempt: object }) => ({
          type,
          ...lastAttempt,
          at: 0,
          duration: 0,
        })),
        [{ type: "api.created", at: 0, duration: 0, status: 503, error: "The answer had the status 503" }],
      );
      assert(dead[0].attempts > 10, String(dead[0].attempts));
      assert(
        dead[0].completedAt - dead[0].createdAt >= 3 * DAY &&
          dead[0].completedAt - dead[0].createdAt < 3 * DAY + 5 * HOUR,
      );
      const [entry] = await server.ok("audit.listEvents", { target: webhookId, actor: "system" });
      assert.equal(entry.action, "webhooks.updateWebhook");
      assert.deepEqual({ ...entry.meta, failingSince: 0 }, { enabled: false, reason: "failing", failingSince: 0 });
      const [event] = await server.ok("events.listEvents", { objectId: webhookId, types: ["webhook.disabled"] });
      assert.equal(event.data.reason, "failing");

      // A disabled webhook gets nothing, and events that happen meanwhile are not sent later.
      receiver.answer = () => 200;
      receiver.received.length = 0;
      await server.createApi();
      await passDelivering(server, 1_000);
      assert.equal(receiver.received.length, 0);
      await server.rejected("webhooks.redeliver", { webhookId }, "precondition_failed");
      await server.rejected("webhooks.sendTest", { webhookId }, "precondition_failed");
      await server.ok("webhooks.updateWebhook", { webhookId, enabled: true });
      await passDelivering(server, 1_000);
      assert.deepEqual(receiver.types, ["api.updated"]);
      assert.deepEqual(await server.ok("webhooks.redeliver", { webhookId }), { count: 1, hasMore: false });
      await passDelivering(server, 1_000);
      assert.deepEqual(receiver.types, ["api.updated", "api.created"]);
      assert.deepEqual(await deliveries(webhookId, { status: "dead" }), []);
      const after = await show(webhookId);
      assert.deepEqual([after.enabled, after.disabled, after.pending], [true, undefined, 0]);
    });

    it("sends a test whatever the filters are, and any delivery again", async (t) => {
      const { receiver, webhookId } = await openWebhook(t, { eventTypes: ["key.created"] });
      const another = await openWebhook(t);
      const { eventId } = await server.ok("webhooks.sendTest", { webhookId });
      await passDelivering(server, 1_000);
      assert.deepEqual(
        receiver.received.map(({ id }) => id),
        [eventId],
      );
      assert.equal(receiver.received[0]!.event.type, "webhook.test");
      assert(!another.receiver.types.includes("webhook.test"));
      assert.equal((await deliveries(webhookId, { eventId }))[0].status, "delivered");
      assert.deepEqual(await server.ok("webhooks.redeliver", { webhookId, eventId }), { count: 1, hasMore: false });
      await passDelivering(server, 1_000);
      assert.deepEqual(
        receiver.received.map(({ id }) => id),
        [eventId, eventId],
      );
      await server.rejected("webhooks.redeliver", { webhookId: another.webhookId, eventId }, "delivery_not_found");
    });

    it("tries a delivery that waits again at once, if asked to", async (t) => {
      const { receiver, webhookId } = await openWebhook(t, { eventTypes: ["key.created"] });
      receiver.answer = () => 500;
      const { eventId } = await server.ok("webhooks.sendTest", { webhookId });
      await passDelivering(server, MINUTE);
      receiver.answer = () => 200;
      receiver.received.length = 0;
      await server.ok("webhooks.redeliver", { webhookId, eventId });
      await passDelivering(server, 500);
      assert.equal(receiver.received.length, 1);
    });

    it("disables a webhook whose endpoint answers 410", async (t) => {
      const { receiver, webhookId } = await openWebhook(t);
      receiver.answer = () => 410;
      await passDelivering(server, 1_000);
      const { enabled, disabled, dead, lastDeliveredAt, endpoint } = await show(webhookId);
      assert.deepEqual([enabled, disabled.reason, dead, lastDeliveredAt], [false, "gone", 1, undefined]);
      const found = async () => {
        const { webhooksDisabled, webhooksDead } = await server.ok("system.getFindings", {});
        const isIt = (one: { webhookId: string }) => one.webhookId === webhookId;
        return [webhooksDisabled.filter(isIt), webhooksDead.filter(isIt)];
      };
      assert.deepEqual(await found(), [
        [{ webhookId, endpoint, disabledAt: disabled.at, reason: "gone" }],
        [{ webhookId, endpoint, dead: 1 }],
      ]);

      receiver.answer = () => 200;
      await server.ok("webhooks.updateWebhook", { webhookId, enabled: true });
      await server.ok("webhooks.redeliver", { webhookId });
      await passDelivering(server, 1_000);
      assert.deepEqual(await found(), [[], []]);
      const listed = await server.ok("webhooks.listWebhooks", {});
      const after = listed.find((one: { webhookId: string }) => one.webhookId === webhookId);
      assert.equal(after.dead, 0);
      const [newest] = await deliveries(webhookId, { status: "delivered" });
      assert.equal(after.lastDeliveredAt, newest.completedAt);
      await server.ok("webhooks.updateWebhook", { webhookId, enabled: false });
      assert.deepEqual(await found(), [[], []]);
    });

    it("stays enabled when its former endpoint answers 410 after it was replaced, and sends the event to the new one", async (t) => {
      const { receiver, webhookId } = await openWebhook(t, { eventTypes: ["api.created"] });
      const late = Promise.withResolvers<ServerResponse>();
      receiver.answer = (_, response) => void late.resolve(response);
      await server.createApi("moved");
      await server.pass(500);
      const response = await late.promise;
      const next = await WebhookReceiver.open(t);
      await server.ok("webhooks.updateWebhook", { webhookId, endpoint: next.url });
      response.writeHead(410).end();
      await passDelivering(server, 1_000);
      await passDelivering(server, 1_000);
      const { enabled, dead } = await show(webhookId);
      assert.deepEqual([enabled, dead, next.types], [true, 0, ["api.created"]]);
    });

    it("does not follow redirects", async (t) => {
      const target = await WebhookReceiver.open(t);
      const { receiver, webhookId } = await openWebhook(t);
      receiver.answer = (_, response) => void response.writeHead(307, { location: target.url }).end();
      await passDelivering(server, 1_000);
      assert.equal(target.received.length, 0);
      const [delivery] = await deliveries(webhookId);
      assert.equal(delivery.lastAttempt.status, 307);
    });

    it("lets no slow endpoint delay another one", async (t) => {
      const slow = await Promise.all([1, 2, 3].map(() => openWebhook(t)));
      const fast = await openWebhook(t);
      for (const { receiver } of slow) receiver.answer = () => undefined;
      for (let i = 0; i < 10; i++) await server.createApi();
      // Without waiting for the requests to the slow ones.
      for (let i = 0; i < 400 && fast.receiver.received.length < 11; i++) {
        if (i === 0) await server.pass(500);
        await new Promise(setImmediate);
        await server.scrape();
      }
      assert.equal(fast.receiver.received.filter(({ event }) => event.type === "api.created").length, 10);
      for (const { receiver } of slow) assert(receiver.received.length <= 5, String(receiver.received.length));
      for (const { webhookId } of slow) await server.ok("webhooks.deleteWebhook", { webhookId });
      await server.pass(15_000);
    });

    it("lets no workspaces occupy a host that they share with another one", async (t) => {
      const slow = await WebhookReceiver.open(t);
      slow.answer = () => undefined;
      const hostile: string[] = [];
      for (const name of ["first", "second", "third"]) {
        const { key: as } = await server.workspace(name);
        hostile.push(as);
        for (let i = 0; i < 4; i++) await server.ok("webhooks.createWebhook", { endpoint: slow.url }, { as });
        for (let i = 0; i < 5; i++) await server.ok("apis.createApi", { name: "Documents" }, { as });
      }
      await server.pass(500);
      // Of 40 requests to a host, three workspaces get ten each if they begin together; one after another 20, 10 and 5.
      await eventually("the workspaces to have their most requests open", async () => slow.received.length >= 30);

      const { key: as } = await server.workspace("on the same host");
      const receiver = await WebhookReceiver.open(t);
      const { webhookId } = await server.ok("webhooks.createWebhook", { endpoint: receiver.url }, { as });
      await server.ok("apis.createApi", { name: "Documents" }, { as });
      await server.pass(500);
      await eventually("the other workspace to get its event", async () => receiver.types.includes("api.created"));
      const found = await server.ok("webhooks.listDeliveries", { webhookId }, { as });
      for (const { lastAttempt } of found) assert.equal(lastAttempt?.error, undefined);
      assert(slow.received.length <= 35, String(slow.received.length));
      for (const as of hostile) {
        for (const { webhookId } of await server.ok("webhooks.listWebhooks", {}, { as })) {
          await server.ok("webhooks.deleteWebhook", { webhookId }, { as });
        }
      }
      await server.pass(15_000);
    });

    it("go on for others while the secrets of a workspace cannot be read, and after a rotation for it (rule 227)", async (t) => {
      const { receiver } = await openWebhook(t, { eventTypes: ["api.created"] });
      const { key: as, workspaceId } = await server.workspace("with a broken vault");
      const broken = await WebhookReceiver.open(t);
      const { webhookId } = await server.ok(
        "webhooks.createWebhook",
        { endpoint: broken.url, eventTypes: ["api.created"] },
        { as },
      );
      t.after(() => server.call("webhooks.deleteWebhook", { webhookId }, { as }).then(() => {}));
      let events = 0;
      // Of another master key, altered, and lost.
      for (const damage of [{ fingerprint: "0".repeat(32) }, { sealed: "" }, undefined]) {
        const kept = await server.change([], async ({ db }) => {
          const row = await db
            .deleteFrom("vault_data_keys")
            .where("workspace_id", "=", workspaceId)
            .returningAll()
            .executeTakeFirstOrThrow();
          if (damage)
            await db
              .insertInto("vault_data_keys")
              .values({ ...row, ...damage })
              .execute();
          return row;
        });
        await server.ok("apis.createApi", { name: "api" }, { as });
        await server.createApi();
        await passDelivering(server, 1_000);
        assert.equal(receiver.received.length, ++events, JSON.stringify(damage));
        assert.equal(broken.received.length, 0);
        const [latest] = await server.ok("webhooks.listDeliveries", { webhookId }, { as });
        assert.match(latest.lastAttempt.error, /cannot be read/);
        await server.change([], async ({ db }) => {
          await db.deleteFrom("vault_data_keys").where("workspace_id", "=", workspaceId).execute();
          await db.insertInto("vault_data_keys").values(kept).execute();
        });
      }
      // The former secret, which cannot be read, signs nothing while it would be valid.
      await server.change([], ({ db }) =>
        db.updateTable("webhooks").set({ secret: "altered" }).where("id", "=", webhookId).execute(),
      );
      const { secret } = await server.ok("webhooks.rotateSecret", { webhookId }, { as });
      await server.ok("apis.createApi", { name: "last" }, { as });
      await passDelivering(server, 1_000);
      verify(secret, broken.received.at(-1)!);
      assert.equal(broken.received.at(-1)?.event.data.name, "last");
    });

    it("need the permission to read events, and a URL that can be called", async () => {
      const url = "https://receiver.invalid/";
      const { key: narrow } = await server.grant("webhooks.*.create_webhook");
      await server.rejected("webhooks.createWebhook", { endpoint: url }, "insufficient_permissions", { as: narrow });
      for (const wrong of ["receiver.invalid", "ftp://receiver.invalid/", "https://name:word@receiver.invalid/"]) {
        const { detail } = await server.rejected("webhooks.createWebhook", { endpoint: wrong }, "invalid_input");
        assert.match(detail, /^`endpoint` /);
      }
    });

    it("have a maximum number", async () => {
      const { key: as } = await server.workspace("many webhooks");
      const url = "https://receiver.invalid/";
      for (let i = 0; i < 50; i++) await server.ok("webhooks.createWebhook", { endpoint: url }, { as });
      await server.rejected("webhooks.createWebhook", { endpoint: url }, "webhook_limit_reached", { as });
      const [{ webhookId }] = await server.ok("webhooks.listWebhooks", { limit: 1 }, { as });
      await server.ok("webhooks.deleteWebhook", { webhookId }, { as });
      await server.rejected("webhooks.getWebhook", { webhookId }, "webhook_not_found", { as });
      await server.ok("webhooks.createWebhook", { endpoint: url }, { as });
    });
  },
  settings,
);

for (const store of stores) {
  describe(`webhooks to private addresses on ${store}`, () => {
    it("are not called without permission of the operator", async (t) => {
      const server = await openTestServer({ store, settings: { VAULT_KEY } });
      t.after(() => server.close());
      const receiver = await WebhookReceiver.open(t);
      for (const url of [receiver.url, receiver.url.replace("http:", "https:"), "https://[::1]/", "https://10.1/"]) {
        await server.rejected("webhooks.createWebhook", { endpoint: url }, "invalid_input");
      }
      // The name is resolved at each attempt.
      const url = receiver.url.replace("http://127.0.0.1", "https://localhost");
      const { webhookId } = await server.ok("webhooks.createWebhook", { endpoint: url });
      await passDelivering(server, 1_000);
      const [delivery] = await server.ok("webhooks.listDeliveries", { webhookId });
      assert.equal(delivery.status, "pending");
      assert.equal(delivery.lastAttempt.error, "The host of the URL has no public address");
      assert.equal(receiver.received.length, 0);
    });
  });
}

describe("webhooks without a vault", () => {
  it("cannot be created", async (t) => {
    const server = await openTestServer({ store: "postgres" });
    t.after(() => server.close());
    const url = "https://receiver.invalid/";
    const { detail } = await server.rejected("webhooks.createWebhook", { endpoint: url }, "precondition_failed");
    assert.match(detail, /LATCHKEY_VAULT_KEY/);
  });
});

describe("two nodes", () => {
  it("deliver on one of them at a time, and the other one takes over", async (t) => {
    const first = await openTestServer({ store: "postgres", settings });
    const second = await openTestServer({ store: "postgres", beside: first, settings });
    t.after(async () => {
      await second.close();
      await first.close();
    });
    const receiver = await WebhookReceiver.open(t);
    await first.ok("webhooks.createWebhook", { endpoint: receiver.url });
    await passUntil([first, second], () => receiver.received.length === 1);
    const holders = await Promise.all([first, second].map(hasLease));
    assert.equal(holders.filter(Boolean).length, 1);
    const [holder, other] = holders[0] ? [first, second] : [second, first];

    // What the holder does not record, because it is cut off, is sent again by the other one.
    holder.store.interception = async (name, proceed) => {
      if (name !== "renewLease" && name !== "recordAttempts") return proceed();
      throw Object.assign(new Error("cut off"), { name: "StoreUnavailable" });
    };
    await other.createApi();
    await passUntil([other], () => receiver.received.length === 2);
    // The clock of the database decides when the lease expires.
    await other.change([], async ({ db }) => {
      await db.updateTable("leases").set({ expires_at: 0 }).where("name", "=", "webhooks").execute();
    });
    await passUntil([other], () => receiver.received.length === 3);
    assert.deepEqual(receiver.types, ["webhook.created", "api.created", "api.created"]);
    assert.equal(new Set(receiver.received.map(({ id }) => id)).size, 2);
    assert(await hasLease(other));

    holder.store.interception = undefined;
    await passUntil([first, second], async () => !(await hasLease(holder)));
    assert.equal(receiver.received.length, 3);
  });
});

async function hasLease(server: TestServer): Promise<boolean> {
  return /^latchkey_webhooks_lease 1$/m.test(await server.scrape());
}

/** Advances the clock until something is so. Each step ends when these nodes have recorded their requests. */
async function passUntil(nodes: readonly TestServer[], isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; !(await isSo()); i++) {
    assert(i < 100, "It never happened");
    nodes[0]!.clock.advance(1_000);
    for (const node of nodes) await settle(node);
  }
}

/** Verifies as a receiver does, at the time of the message. */
function verify(secret: string, { headers, body }: Received): void {
  mock.timers.enable({ apis: ["Date"], now: Number(headers["webhook-timestamp"]) * 1_000 });
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
  } finally {
    mock.timers.reset();
  }
}
