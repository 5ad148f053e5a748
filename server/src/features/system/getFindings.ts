import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { ADMINISTRATOR } from "../../../../engine/src/rules/grants.ts";
import { query } from "../../platform/rpc/operation.ts";
import { grantsOf } from "../../platform/store/access/root-key-lookup.ts";
import type { WebhookRow } from "../../platform/store/schema.ts";
import { exampleAdministratorId, exampleTime } from "../../platform/vocabulary/examples.ts";
import { policyOf } from "../apis/record.ts";
import {
  COUNTED_MAX,
  FOUND_MAX,
  type FoundKey as FoundKeyRow,
  KeyFindingReader,
} from "../keys/statements/key-findings.ts";
import { KeyPolicyReader } from "../keys/statements/key-policy.ts";
import { type ListedRootKey, RootKeyReader } from "../rootKeys/statements.ts";
import { DeliveryReader } from "../webhooks/statements/deliveries.ts";
import { WEBHOOKS_PER_WORKSPACE_MAX, WebhookReader } from "../webhooks/statements/webhooks.ts";

const DAY = 86_400_000;
const EXPIRING_WITHIN = 14 * DAY;
const UNUSED_FOR = 90 * DAY;
/** Without a refill there is no amount to compare with. */
const CREDITS_LEFT = 10;

const FoundKey = {
  keyId: z.string(),
  apiId: z.string(),
  start: z.string(),
  name: z.string().optional(),
};

const FoundWebhook = {
  webhookId: z.string(),
  name: z.string().optional(),
  endpoint: z.string(),
};

const FoundRootKey = z.strictObject({
  rootKeyId: z.string(),
  name: z.string(),
  createdAt: z.int(),
  lastUsedAt: z.int().optional(),
});

const counted = <Fields extends z.ZodRawShape>(fields: Fields, what: string) =>
  z
    .strictObject({
      count: z.int().describe(`At most ${COUNTED_MAX.toLocaleString("en")}: then there may be more.`),
      keys: z.array(z.strictObject({ ...FoundKey, ...fields })).describe(`The first ${FOUND_MAX}.`),
    })
    .optional()
    .describe(`${what} Absent without \`apis.*.read_key\`.`);

const rootKeys = <Fields extends z.ZodRawShape>(what: string, fields: Fields = {} as Fields) =>
  z
    .array(FoundRootKey.extend(fields))
    .max(FOUND_MAX)
    .optional()
    .describe(`${what} Absent without \`rootKeys.*.read_root_key\`.`);

const webhooks = <Fields extends z.ZodRawShape>(fields: Fields, what: string) =>
  z
    .array(z.strictObject({ ...FoundWebhook, ...fields }))
    .max(WEBHOOKS_PER_WORKSPACE_MAX)
    .optional()
    .describe(`${what} Absent without \`webhooks.*.read_webhook\`.`);

export const getFindings = query("system.getFindings", {
  summary: "Get what needs attention",
  description:
    "Keys that expire, have almost no credits, have leaked or do not obey the policy of their API, root keys that should be deleted or restricted, and webhooks " +
    "whose events do not arrive. A member is absent if the root key may not read its resources. `system.getStatus` returns " +
    "components that do not work.",
  permissions: ["apis.*.read_key", "rootKeys.*.read_root_key", "webhooks.*.read_webhook"],
  input: z.strictObject({}),
  output: z.strictObject({
    keysExpiring: counted({ expires: z.int() }, "Active keys that expire within 14 days."),
    creditsLow: counted(
      { remaining: z.int(), refillAmount: z.int().optional() },
      `Active keys with at most a tenth of their refill left, or at most ${CREDITS_LEFT} credits without a refill.`,
    ),
    keysLeaked: counted(
      { leakedAt: z.int().describe("When it was first reported, as Unix time in milliseconds.") },
      "Active keys that were reported as leaked, as long as the audit log has the report.",
    ),
    keysAgainstPolicy: z
      .array(
        z.strictObject({
          apiId: z.string(),
          name: z.string(),
          count: z.int().describe(`At most ${COUNTED_MAX.toLocaleString("en")}: then there may be more.`),
          keys: z
            .array(
              z.strictObject({
                ...FoundKey,
                expires: z.int().optional(),
                against: z
                  .array(z.enum(["expiry", "limitsRequired", "prefixFixed"]))
                  .describe("The members of the policy that it does not obey."),
              }),
            )
            .describe(`The first ${FOUND_MAX}, the oldest first.`),
        }),
      )
      .max(FOUND_MAX)
      .optional()
      .describe(
        `The first ${FOUND_MAX} APIs with active keys that do not obey its policy: keys that are older than it, and those whose plan ` +
          "or identity has lost its limits. Absent without `apis.*.read_key`.",
      ),
    rootKeysUnused: rootKeys(`The first ${FOUND_MAX} enabled root keys that made no call for 90 days.`),
    rootKeysUnrestricted: rootKeys(`The first ${FOUND_MAX} enabled root keys with the permission \`*\`.`),
    rootKeysLeaked: rootKeys(`The first ${FOUND_MAX} enabled root keys that were reported as leaked.`, {
      leakedAt: z.int().describe("When it was first reported, as Unix time in milliseconds."),
    }),
    webhooksDisabled: webhooks(
      {
        disabledAt: z.int().describe("Unix time in milliseconds."),
        reason: z.enum(["failing", "gone"]).describe("As in `disabled` of `webhooks.getWebhook`."),
      },
      "Webhooks that the service disabled, because their endpoint failed for too long or answered 410.",
    ),
    webhooksDead: webhooks(
      { dead: z.int().describe("As `dead` of `webhooks.getWebhook`.") },
      "Webhooks with deliveries that were given up. `webhooks.redeliver` sends them again.",
    ),
  }),
  problems: [],
  examples: [
    {
      summary: "A workspace with one administrator",
      input: {},
      output: {
        keysExpiring: { count: 0, keys: [] },
        creditsLow: { count: 0, keys: [] },
        keysLeaked: { count: 0, keys: [] },
        keysAgainstPolicy: [],
        rootKeysUnused: [],
        rootKeysUnrestricted: [{ rootKeyId: exampleAdministratorId, name: "administrator", createdAt: exampleTime }],
        rootKeysLeaked: [],
        webhooksDisabled: [],
        webhooksDead: [],
      },
    },
  ],
}).handle(async (_, { store, principal, now }) => {
  const mayReadKeys = principal.may("apis.*.read_key");
  const mayReadRootKeys = principal.may("rootKeys.*.read_root_key");
  const mayReadWebhooks = principal.may("webhooks.*.read_webhook");
  if (!mayReadKeys && !mayReadRootKeys && !mayReadWebhooks) principal.authorize("apis.*.read_key");
  const keys = mayReadKeys
    ? await {
        ...(await findKeys(store.of(KeyFindingReader), now)),
        keysAgainstPolicy: await findKeysAgainstPolicy(store.of(KeyPolicyReader), now),
      }
    : {};
  const rootKeys = mayReadRootKeys ? findRootKeys(await store.of(RootKeyReader).list(), now) : {};
  const webhooks = mayReadWebhooks ? await findWebhooks(store.of(WebhookReader), store.of(DeliveryReader)) : {};
  return { ...keys, ...rootKeys, ...webhooks };
});

async function findKeys(keyFindings: KeyFindingReader, now: Instant) {
  const expiring = await keyFindings.expiringWithin(EXPIRING_WITHIN, now);
  const low = await keyFindings.lowOnCredits(CREDITS_LEFT, now);
  const leaked = await keyFindings.leaked(now);
  return {
    keysExpiring: {
      count: expiring.count,
      keys: expiring.keys.map((key) => ({ ...foundKey(key), expires: key.expires_at! })),
    },
    creditsLow: {
      count: low.count,
      keys: low.keys.map((key) => ({
        ...foundKey(key),
        remaining: key.remaining,
        ...(key.refill_amount !== null && { refillAmount: key.refill_amount }),
      })),
    },
    keysLeaked: {
      count: leaked.count,
      keys: leaked.keys.map((key) => ({ ...foundKey(key), leakedAt: key.leaked_at })),
    },
  };
}

async function findKeysAgainstPolicy(policies: KeyPolicyReader, now: Instant) {
  const apis = await policies.apis();
  const found = [];
  for (const api of apis) {
    const keys = await policies.against(api, policyOf(api), apis.length, now);
    if (keys.length === 0) continue;
    found.push({
      apiId: api.id,
      name: api.name,
      count: keys.length,
      keys: keys.slice(0, FOUND_MAX).map(({ expires_at: expires, expiry, unlimited, prefix, ...key }) => ({
        ...foundKey(key),
        ...(expires !== null && { expires }),
        against: [
          ...(expiry ? ["expiry" as const] : []),
          ...(unlimited ? ["limitsRequired" as const] : []),
          ...(prefix ? ["prefixFixed" as const] : []),
        ],
      })),
    });
    if (found.length === FOUND_MAX) break;
  }
  return found;
}

function foundKey({ id, api_id, start, name }: FoundKeyRow) {
  return { keyId: id, apiId: api_id, start, ...(name !== null && { name }) };
}

function findRootKeys(all: readonly ListedRootKey[], now: Instant) {
  const usable = all.filter(({ enabled, expires_at }) => enabled === 1 && (expires_at === null || expires_at > now));
  const unused = usable.filter(({ last_used_at, created_at }) => (last_used_at ?? created_at) <= now - UNUSED_FOR);
  const unrestricted = usable.filter((rootKey) => grantsOf(rootKey).includes(ADMINISTRATOR));
  const leaked = usable.flatMap((rootKey) => {
    const { leaked_at: leakedAt } = rootKey;
    return leakedAt === null ? [] : { ...foundRootKey(rootKey), leakedAt };
  });
  return {
    rootKeysUnused: unused.slice(0, FOUND_MAX).map(foundRootKey),
    rootKeysUnrestricted: unrestricted.slice(0, FOUND_MAX).map(foundRootKey),
    rootKeysLeaked: leaked.slice(0, FOUND_MAX),
  };
}

function foundRootKey({ id, name, created_at, last_used_at }: ListedRootKey) {
  return {
    rootKeyId: id,
    name,
    createdAt: created_at,
    ...(last_used_at !== null && { lastUsedAt: last_used_at }),
  };
}

async function findWebhooks(webhooks: WebhookReader, deliveries: DeliveryReader) {
  const all = await webhooks.page({ from: undefined, limit: WEBHOOKS_PER_WORKSPACE_MAX });
  const summaries = await deliveries.summaries(all.map(({ id }) => id));
  const found = (webhook: WebhookRow) => ({
    webhookId: webhook.id,
    endpoint: webhook.url,
    ...(webhook.name !== null && { name: webhook.name }),
  });
  return {
    webhooksDisabled: all.flatMap((webhook) => {
      const { disabled_at: disabledAt, disabled_reason: reason } = webhook;
      if (disabledAt === null || reason === null || reason === "requested") return [];
      return { ...found(webhook), disabledAt, reason };
    }),
    webhooksDead: all.flatMap((webhook) => {
      const { dead } = summaries.get(webhook.id)!;
      return dead > 0 ? { ...found(webhook), dead } : [];
    }),
  };
}
