import { auditRetention } from "../features/audit/statements/retention.ts";
import { budgetIndexes } from "../features/budgets/statements.ts";
import { planBalancesIndex } from "../features/credits/statements/plan-balances.ts";
import { slotsIndex } from "../features/credits/statements/slots.ts";
import { sessionRetention, signInLinkRetention } from "../features/dashboard/statements.ts";
import { eventRetention } from "../features/events/statements/retention.ts";
import { closedHoldsRetention, expiredHoldsRetention } from "../features/holds/statements.ts";
import { identityRetention } from "../features/identities/statements.ts";
import { derivedKeyRetention } from "../features/keys/statements/derived-keys.ts";
import {
  endedKeysRetention,
  keyRetention,
  keysOfApisRetention,
  purgedKeysRetention,
} from "../features/keys/statements/key-retention.ts";
import { deletedKeysIndex } from "../features/keys/statements/key-search.ts";
import { portalSessionRetention } from "../features/portal/statements.ts";
import { namespaceRetention } from "../features/ratelimits/statements/namespaces.ts";
import { rootKeyRetention } from "../features/rootKeys/statements.ts";
import { deliveryRetention, webhookRetention } from "../features/webhooks/statements/retention.ts";
import { changesRetention, markersRetention } from "../platform/store/changes.ts";
import { idempotencyRetention } from "../platform/store/idempotency.ts";
import { bytesRetention } from "../platform/store/quotas/workspace-bytes.ts";
import type { LateIndex, RetentionTask } from "../platform/store/retention.ts";

/**
 * Everything that loses old rows, by the name under which logs and metrics report it. A pass runs the tasks in this order:
 * rows that refer to others come before these.
 */
const tasks = {
  idempotency_records: idempotencyRetention,
  changes: changesRetention,
  transaction_markers: markersRetention,
  sessions: sessionRetention,
  portal_sessions: portalSessionRetention,
  sign_in_links: signInLinkRetention,
  audit_events: auditRetention,
  events: eventRetention,
  webhook_deliveries: deliveryRetention,
  bytes_of_audit: bytesRetention("audit"),
  bytes_of_events: bytesRetention("events"),
  holds: closedHoldsRetention,
  expired_holds: expiredHoldsRetention,
  keys_of_apis: keysOfApisRetention,
  ended_keys: endedKeysRetention,
  derived_keys: derivedKeyRetention,
  purged_keys: purgedKeysRetention,
  keys: keyRetention,
  identities: identityRetention,
  ratelimit_namespaces: namespaceRetention,
  root_keys: rootKeyRetention,
  webhooks: webhookRetention,
} as const satisfies Record<string, RetentionTask>;

export type RetentionTable = keyof typeof tasks;

export const retentionTasks: Readonly<Record<RetentionTable, RetentionTask>> = tasks;

export const retentionTables = Object.keys(tasks) as readonly RetentionTable[];

const indexesOfTasks = Object.values(retentionTasks).flatMap(({ index }) => index ?? []);

/** Every index that services of PostgreSQL build. */
export const lateIndexes: readonly LateIndex[] = [
  deletedKeysIndex,
  ...new Map(
    [...indexesOfTasks, ...budgetIndexes, slotsIndex, planBalancesIndex].map((index) => [index.name, index]),
  ).values(),
];
