import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { SealBroken } from "../../../../engine/src/crypto/seal.ts";
import type { WebhookRow } from "../../platform/store/schema.ts";
import type { Sql } from "../../platform/store/store.ts";
import { MasterKeyMissing } from "../../platform/vault/vault.ts";

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

/**
 * The secrets that sign messages to a webhook. One that was altered, or whose master key is missing, must not stop the deliveries of
 * other webhooks; a former one must not stop those of its own.
 */
export async function openSecrets(sql: Sql, vault: SecretOpener, webhook: WebhookRow, now: Instant): Promise<string[]> {
  const { id, workspace_id, secret, previous_secret, previous_until } = webhook;
  const open = async (sealed: string) => {
    try {
      return await vault.openWebhookSecret(sql, workspace_id, id, sealed);
    } catch (error) {
      if (error instanceof SealBroken || error instanceof MasterKeyMissing) return undefined;
      throw error;
    }
  };
  const current = await open(secret);
  if (current === undefined) return [];
  const isRotating = previous_secret !== null && previous_until !== null && now < previous_until;
  const former = isRotating ? await open(previous_secret) : undefined;
  return former === undefined ? [current] : [current, former];
}
