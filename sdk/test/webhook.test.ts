/**
 * What `verifyWebhook` of every client must do, as a list that names no language: `webhook-scenarios.json`. A message has
 * `headers` and a `body`; the receiver has `secrets`, and its clock shows `now`, in seconds. The `result` is `accepted`, with
 * these members of the `event`, `rejected`, or `unusable`, which is the fault of the receiver.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { signWebhook } from "../../server/src/features/webhooks/signature.ts";
import { Secret, verifyWebhook, WebhookError } from "../src/index.ts";

interface Scenario {
  name: string;
  secrets: string[];
  headers: Record<string, string>;
  body: string;
  now: number;
  result: "accepted" | "rejected" | "unusable";
  event?: object;
}

const scenarios: Scenario[] = JSON.parse(readFileSync(new URL("webhook-scenarios.json", import.meta.url), "utf8"));

describe("a message to a webhook", () => {
  for (const { name, secrets, headers, body, now, result, event } of scenarios) {
    it(name, async () => {
      for (const given of [body, new TextEncoder().encode(body)]) {
        const asHeaders = Object.values(headers).every((value) => /^[\x21-\x7e][\x20-\x7e]*$/.test(value));
        for (const each of [headers, ...(asHeaders ? [new Headers(headers)] : [])]) {
          const verified = verifyWebhook(given, each, secrets, { now: () => now * 1_000 });
          if (result === "accepted") assert.partialDeepStrictEqual(await verified, event);
          else await assert.rejects(verified, result === "rejected" ? WebhookError : TypeError);
        }
      }
    });
  }

  it("is accepted as the service signs it, by the clock of this machine", async () => {
    const secret = scenarios[0]!.secrets[0]!;
    const timestamp = Math.floor(Date.now() / 1_000);
    const { body } = scenarios[0]!;
    const headers = {
      "webhook-id": "evt_1",
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signWebhook(secret, { id: "evt_1", timestamp, body }),
    };
    const event = await verifyWebhook(body, headers, new Secret(secret));
    // The type narrows the data.
    assert.equal(event.type === "key.created" && event.data.keyId, "key_1");
    await assert.rejects(verifyWebhook(body, { ...headers, "webhook-id": ["evt_1", "evt_1"] }, secret), WebhookError);
  });
});
