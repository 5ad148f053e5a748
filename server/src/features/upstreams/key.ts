import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { HASH_VERSION } from "../../../../engine/src/crypto/hash.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import { readBody } from "../../platform/rpc/body.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { type AuditEntry, recordChange } from "../../platform/store/audit/audit.ts";
import { insertChange } from "../../platform/store/changes.ts";
import { type QuotaLimits, type Taken, takeQuotas } from "../../platform/store/quotas/workspace-usage.ts";
import { Rollback, type Sql } from "../../platform/store/store.ts";
import { StoreWriter } from "../../platform/store/workspace-store.ts";
import { watchWrites } from "../../platform/store/written-tables.ts";
import { policyOf } from "../apis/record.ts";
import { ApiWriter } from "../apis/statements.ts";
import { OLDER_PROGRAMS, refillError } from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { SlotWriter } from "../credits/statements/slots.ts";
import { OLDER_PROGRAMS_OF_SLOTS } from "../holds/concurrency.ts";
import { OLDER_PROGRAMS_OF_ADDRESSES } from "../keys/allowed-ips.ts";
import { type ImportedAttributes, importedMembers, insertImported } from "../keys/insert-imported.ts";
import { expiryFault, expiryOfNew, showsPrefix } from "../keys/policy.ts";
import { KeyPolicyReader } from "../keys/statements/key-policy.ts";
import { KeyWriter } from "../keys/statements/keys.ts";
import { BUDGET_OF_KEY } from "../plans/record.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { OLDER_PROGRAMS_OF_SHADOW } from "../ratelimits/shadow.ts";
import { RatelimitWriter } from "../ratelimits/statements/ratelimits.ts";
import type { UpstreamAnswer } from "./upstreams.ts";

/** What an upstream verifier answers. Members that are not documented are ignored. */
const AnswerBody = z.discriminatedUnion("valid", [
  z.object({ valid: z.literal(false) }),
  z.object({ valid: z.literal(true), ...importedMembers }).check(({ value: { credits }, issues }) => {
    const message = refillError(credits?.refill, credits?.remaining === null);
    if (message) issues.push({ code: "custom", input: credits, path: ["credits", "refill"], message });
  }),
]);

/**
 * The answer of an upstream verifier.
 *
 * @throws {Error} if it does not have the documented form. The message does not repeat the answer.
 */
export function readUpstreamAnswer(text: string): UpstreamAnswer<ImportedAttributes> {
  const answer = readAnswer(text);
  if (!answer.valid) return { valid: false };
  const { valid: _, ...attributes } = answer;
  return { valid: true, attributes };
}

function readAnswer(text: string): z.output<typeof AnswerBody> {
  try {
    return readBody(AnswerBody, text, "the upstream verifier", true);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const [first] = error.errors ?? [];
    throw new Error(`The answer does not have the documented form: ${first?.location}: ${first?.message}`);
  }
}

/** The plan that an upstream verifier names, or why it cannot be used: its operator must create it first. */
async function findPlan(store: StoreWriter, plan: string | undefined): Promise<{ id: string | null } | string> {
  if (plan === undefined) return { id: null };
  const found = (await store.of(PlanWriter).keep([plan])).get(plan);
  if (!found) return `The answer names the plan '${plan}', which does not exist.`;
  return found.budget === null ? found : `The answer names the plan '${plan}'. ${BUDGET_OF_KEY}`;
}

/** Why a member of an answer cannot be stored yet: a node of an earlier release would read it wrongly. */
async function olderNodeFault(store: StoreWriter, attributes: ImportedAttributes): Promise<string | undefined> {
  if (!(await store.of(BalanceWriter).accepts([attributes.credits?.refill]))) return OLDER_PROGRAMS;
  if (!(await store.of(SlotWriter).accepts(attributes.concurrency))) return OLDER_PROGRAMS_OF_SLOTS;
  if (!(await store.of(RatelimitWriter).accepts(attributes.ratelimits))) return OLDER_PROGRAMS_OF_SHADOW;
  if (!(await store.of(KeyWriter).accepts(attributes.allowedIps))) return OLDER_PROGRAMS_OF_ADDRESSES;
  return undefined;
}

const PREFIX_MISSING = "The policy of the API fixes the prefix of keys, and the key does not begin with it.";
const UNLIMITED =
  "The policy of the API requires a limit for each key. The answer must have `ratelimits` or `concurrency`, or a plan or an owner that has one.";

/** A key that an upstream verifier knows. */
export interface UpstreamKey {
  workspaceId: string;
  apiId: string;
  /** The hash of its string. */
  hash: string;
  /** The beginning of its string. */
  start: string;
  attributes: ImportedAttributes;
  now: Instant;
}

/** What came of the creation of a key: the change, whether the key exists now, and what it took of quotas. */
interface CreatedUpstreamKey {
  change: { tags: string[]; sequence: number } | null;
  exists: boolean;
  taken?: Taken;
  /** Why the key cannot be created: its answer does not obey the policy of the API, or says what cannot be stored. */
  refused?: string;
}

/**
 * Creates a key that an upstream verifier knows, unless it exists already, was deleted here, or the API has no verifier any
 * more. Rolls back if that exceeds a quota.
 */
export async function createUpstreamKey(
  sql: Sql,
  { workspaceId, apiId, hash, start, attributes, now }: UpstreamKey,
  random: Random,
  limits: QuotaLimits,
): Promise<CreatedUpstreamKey | Rollback<CreatedUpstreamKey>> {
  const { sql: watched, rowChanges } = watchWrites(sql);
  const store = new StoreWriter(watched, workspaceId);
  const api = await store.of(ApiWriter).find(apiId);
  if (!api || api.upstream === null) return { change: null, exists: false };
  const keys = store.of(KeyWriter);
  const isLive = async () => (await keys.findByHashes([hash])) !== undefined;
  if ((await keys.findExistingHashes([hash])).size > 0) return { change: null, exists: await isLive() };
  const policy = policyOf(api);
  const expires = expiryOfNew(policy, attributes.expires, now) ?? undefined;
  const refuse = (refused: string) => ({ change: null, exists: false, refused });
  const fault = (await olderNodeFault(store, attributes)) ?? expiryFault(policy, expires ?? null, now);
  if (fault !== undefined) return refuse(fault);
  if (policy.prefixFixed && !showsPrefix(start, api.prefix)) return refuse(PREFIX_MISSING);
  const assigned = await findPlan(store, attributes.plan);
  if (typeof assigned === "string") return refuse(assigned);
  const plan = {
    apiId,
    policy,
    hashVersion: HASH_VERSION,
    migrationId: null,
    startOf: () => start,
    budgetOf: () => null,
    planOf: () => assigned.id,
  };
  const [made] = await insertImported([{ key: attributes, hash }], plan, { store, random, now });
  const { keyId } = made!;
  // A concurrent transaction may have inserted it first.
  if (keyId === null) return { change: null, exists: await isLive() };
  if (policy.limitsRequired && (await store.of(KeyPolicyReader).unlimited([keyId])).length > 0) {
    return new Rollback(refuse(UNLIMITED));
  }
  const { name, externalId } = attributes;
  const created = {
    keyId,
    apiId,
    start,
    ...(externalId !== undefined && { externalId }),
    ...(name !== undefined && { name }),
    ...(expires !== undefined && { expires }),
  };
  const entry: AuditEntry = {
    workspaceId,
    occurredAt: now,
    actor: "system",
    action: "keys.verifyKey",
    targets: [keyId, apiId],
    meta: { upstream: true, start, ...(name !== undefined && { name }) },
    events: [{ type: "key.created", objectId: keyId, data: created }],
  };
  const { audit, events } = await recordChange(sql, entry, random);
  const bytes = { audit: audit + keys.metadataBytes, events };
  const taken = await takeQuotas(
    sql,
    { workspaceId, rows: rowChanges, bytes, isReduction: false, now },
    limits,
    random,
  );
  if (taken.exceeded !== undefined) return new Rollback({ change: null, exists: false, taken });
  return { change: { tags: [hash], sequence: await insertChange(sql, [hash], now, workspaceId) }, exists: true, taken };
}
