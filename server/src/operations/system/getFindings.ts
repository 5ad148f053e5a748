import { z } from "zod";
import type { Instant } from "../../clock/clock.ts";
import { query } from "../../rpc/operation.ts";
import { ADMINISTRATOR } from "../../rules/grants.ts";
import { grantsOf, type ListedRootKey } from "../../store/administration/root-keys.ts";
import { COUNTED_MAX, FOUND_MAX, type FoundKey as FoundKeyRow } from "../../store/keys/key-findings.ts";
import type { StoreReader } from "../../store/workspace-store.ts";
import { exampleAdministratorId, exampleTime } from "../examples.ts";

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

const rootKeys = (what: string) =>
  z.array(FoundRootKey).max(FOUND_MAX).optional().describe(`${what} Absent without \`rootKeys.*.read_root_key\`.`);

export const getFindings = query("system.getFindings", {
  summary: "Get what needs attention",
  description:
    "Keys that expire or have almost no credits, and root keys that should be deleted or restricted. A member is absent " +
    "if the root key may not read its resources. `system.getStatus` returns components that do not work.",
  permissions: ["apis.*.read_key", "rootKeys.*.read_root_key"],
  input: z.strictObject({}),
  output: z.strictObject({
    keysExpiring: counted({ expires: z.int() }, "Active keys that expire within 14 days."),
    creditsLow: counted(
      { remaining: z.int(), refillAmount: z.int().optional() },
      `Active keys with at most a tenth of their refill left, or at most ${CREDITS_LEFT} credits without a refill.`,
    ),
    rootKeysUnused: rootKeys(`The first ${FOUND_MAX} enabled root keys that made no call for 90 days.`),
    rootKeysUnrestricted: rootKeys(`The first ${FOUND_MAX} enabled root keys with the permission \`*\`.`),
  }),
  problems: [],
  examples: [
    {
      summary: "A workspace with one administrator",
      input: {},
      output: {
        keysExpiring: { count: 0, keys: [] },
        creditsLow: { count: 0, keys: [] },
        rootKeysUnused: [],
        rootKeysUnrestricted: [{ rootKeyId: exampleAdministratorId, name: "administrator", createdAt: exampleTime }],
      },
    },
  ],
}).handle(async (_, { store, principal, now }) => {
  const mayReadKeys = principal.may("apis.*.read_key");
  const mayReadRootKeys = principal.may("rootKeys.*.read_root_key");
  if (!mayReadKeys && !mayReadRootKeys) principal.authorize("apis.*.read_key");
  const keys = mayReadKeys ? await findKeys(store, now) : {};
  const rootKeys = mayReadRootKeys ? findRootKeys(await store.rootKeys.list(), now) : {};
  return { ...keys, ...rootKeys };
});

async function findKeys({ keyFindings }: StoreReader, now: Instant) {
  const expiring = await keyFindings.expiringWithin(EXPIRING_WITHIN, now);
  const low = await keyFindings.lowOnCredits(CREDITS_LEFT, now);
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
  };
}

function foundKey({ id, api_id, start, name }: FoundKeyRow) {
  return { keyId: id, apiId: api_id, start, ...(name !== null && { name }) };
}

function findRootKeys(all: readonly ListedRootKey[], now: Instant) {
  const usable = all.filter(({ enabled, expires_at }) => enabled === 1 && (expires_at === null || expires_at > now));
  const unused = usable.filter(({ last_used_at, created_at }) => (last_used_at ?? created_at) <= now - UNUSED_FOR);
  const unrestricted = usable.filter((rootKey) => grantsOf(rootKey).includes(ADMINISTRATOR));
  const first = (found: readonly ListedRootKey[]) =>
    found.slice(0, FOUND_MAX).map(({ id, name, created_at, last_used_at }) => ({
      ...{ rootKeyId: id, name, createdAt: created_at },
      ...(last_used_at !== null && { lastUsedAt: last_used_at }),
    }));
  return { rootKeysUnused: first(unused), rootKeysUnrestricted: first(unrestricted) };
}
