import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { Lease } from "../../platform/store/lease.ts";
import type { Sql } from "../../platform/store/store.ts";
import type { Vault } from "../../platform/vault/vault.ts";
import { openSecrets, type Receiver } from "./receiver.ts";
import {
  type Attempt,
  catchUp,
  type DueDelivery,
  findDeliveryWork,
  findDueDeliveries,
  findReceiver,
  handOut,
  recordAttempts,
} from "./statements/delivering.ts";

/** The procedures of the delivery of webhooks. */
export function webhookProcedures({ vault, random }: { vault: Vault; random: Random }) {
  return {
    reading: {
      deliveryWork: (sql: Sql, now: Instant) => findDeliveryWork(sql, now),
      dueDeliveries: async (
        sql: Sql,
        { wanted, now }: { wanted: readonly { webhookId: string; limit: number }[]; now: Instant },
      ) => {
        const found: { webhook: Receiver; deliveries: DueDelivery[] }[] = [];
        for (const { webhookId, limit } of wanted) {
          const row = await findReceiver(sql, webhookId);
          if (row === undefined) continue;
          const secrets = await openSecrets(sql, vault, row, now);
          const webhook = { webhookId, workspaceId: row.workspace_id, url: row.url, secrets };
          found.push({ webhook, deliveries: await findDueDeliveries(sql, { webhookId, limit, now }) });
        }
        return found;
      },
    },
    writing: {
      catchUp: (sql: Sql, step: { lease: Lease; webhookIds: readonly string[]; now: Instant }) => catchUp(sql, step),
      handOut: (sql: Sql, step: { lease: Lease; now: Instant }) => handOut(sql, step),
      recordAttempts: (sql: Sql, step: { lease: Lease; attempts: readonly Attempt[]; now: Instant }) =>
        recordAttempts(sql, step, random),
    },
  };
}
