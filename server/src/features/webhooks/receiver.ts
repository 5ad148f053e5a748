import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { SealBroken } from "../../../../engine/src/crypto/seal.ts";
import type { WebhookRow } from "../../platform/store/schema.ts";
import type { Sql } from "../../platform/store/store.ts";

/** A webhook as a delivery needs it. */
export interface Receiver {
  webhookId: string;
  workspaceId: string;
  url: string;
  /** The current one first, then the former one while it is valid. Empty if they cannot be opened. */
  secrets: readonly string[];
}

/** Opens the sealed secret of a webhook. */
export interface SecretOpener {
  openWebhookSecret(sql: Sql, workspaceId: string, webhookId: string, sealed: string): Promise<string>;
}

/** The secrets that sign messages to a webhook. One that was altered must not stop the deliveries of other webhooks. */
export async function openSecrets(sql: Sql, vault: SecretOpener, webhook: WebhookRow, now: Instant): Promise<string[]> {
  const { id, workspace_id, secret, previous_secret, previous_until } = webhook;
  const isRotating = previous_secret !== null && previous_until !== null && now < previous_until;
  const secrets: string[] = [];
  try {
    for (const sealed of isRotating ? [secret, previous_secret] : [secret]) {
      secrets.push(await vault.openWebhookSecret(sql, workspace_id, id, sealed));
    }
    return secrets;
  } catch (error) {
    if (error instanceof SealBroken) return [];
    throw error;
  }
}
