/** What webhooks get when the service is killed again and again. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stores, VAULT_KEY } from "./harness.ts";
import { eventually, makeFolder, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";
import { assertOrder, WebhookReceiver } from "./webhook-receiver.ts";

const KILLS = 3;
const KEYS_PER_LIFE = 12;

for (const store of stores) {
  describe(`a service on ${store} that is killed while it delivers`, () => {
    it("sends every event of a committed change, and none of another one", async (t) => {
      const directory = makeFolder(t);
      const receiver = await WebhookReceiver.open(t);
      const database = store === "postgres" ? await freshDatabase() : undefined;
      if (database) t.after(() => database.drop());
      const settings = {
        WEBHOOK_ALLOW_PRIVATE: "yes",
        ...(database && { DATABASE_URL: database.url, VAULT_KEY }),
      };
      let server = await start({ directory, settings });
      const { apiId } = await server.ok("apis.createApi", { name: "killed" });
      const eventTypes = ["key.created", "key.updated", "key.deleted"];
      await server.ok("webhooks.createWebhook", { endpoint: receiver.url, eventTypes });
      for (let life = 0; life < KILLS; life++) {
        // Calls run while the process is killed: some are committed without an answer.
        const calls = Array.from({ length: KEYS_PER_LIFE }, () => changeKey(server, apiId));
        const before = receiver.received.length;
        const answered = Promise.any(calls);
        await answered;
        if (life > 0) await eventually("a delivery", () => receiver.received.length > before);
        await server.kill("SIGKILL");
        await Promise.allSettled(calls);
        server = await start({ directory, settings });
      }
      await Promise.all(Array.from({ length: KEYS_PER_LIFE }, () => changeKey(server, apiId)));
      const events = await listEvents(server, eventTypes);
      assert(events.length >= 3 * KEYS_PER_LIFE, String(events.length));
      const ids = events.map(({ id }) => id);
      await eventually("all events", () => new Set(receiver.received.map(({ id }) => id)).size >= ids.length);
      assertOrder(receiver.received, ({ data }) => data.keyId as string, ids);
      await server.kill("SIGTERM");
    });
  });
}

async function changeKey(server: Server, apiId: string): Promise<void> {
  const { keyId } = await server.ok("keys.createKey", { apiId });
  await server.ok("keys.updateKey", { keyId, name: "changed" });
  await server.ok("keys.deleteKey", { keyId });
}

async function listEvents(server: Server, types: readonly string[]): Promise<{ id: string }[]> {
  const events: { id: string }[] = [];
  for (let cursor: string | undefined; ; ) {
    const { body } = await server.call("events.listEvents", { types, ...(cursor !== undefined && { cursor }) });
    events.push(...body.data);
    if (!body.pagination.hasMore) return events;
    cursor = body.pagination.cursor;
  }
}
