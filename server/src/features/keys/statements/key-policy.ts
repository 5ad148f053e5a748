import { type RawBuilder, sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { ApiRow, KeyRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { COUNTED_MAX, type FoundKey } from "./key-findings.ts";

/** The most APIs with a policy whose keys are examined, and the most keys of all of them: the oldest of each API. */
export const APIS_EXAMINED_MAX = 100;
const KEYS_EXAMINED_MAX = 100_000;

/** A key that does not obey the policy of its API, with the rules that it does not obey: 1 for each. */
type KeyAgainstPolicy = FoundKey & Pick<KeyRow, "expires_at"> & { expiry: number; unlimited: number; prefix: number };

/** The rules of a policy that a key can break. */
interface Rules {
  readonly expiry?: { readonly max?: number | undefined } | undefined;
  readonly limitsRequired?: boolean | undefined;
  readonly prefixFixed?: boolean | undefined;
}

type PolicedApi = Pick<ApiRow, "id" | "name" | "prefix" | "policy">;

/** How keys of one workspace stand to the policies of their APIs. */
export class KeyPolicyReader extends WorkspaceRows {
  /** Those of these keys that nothing limits: neither they, nor their plans, nor their identities. */
  async unlimited(keyIds: readonly string[]): Promise<string[]> {
    const rows = await this.sql.db
      .selectFrom("keys")
      .select("keys.id")
      .where("keys.workspace_id", "=", this.workspaceId)
      .where(this.sql.dialect.values.isOneOf("keys.id", keyIds))
      .where(isUnlimited)
      .execute();
    return rows.map(({ id }) => id);
  }

  /** The keys of a reroll chain that nothing limits; `besidePlan`: nothing but the plan, which they share. */
  async unlimitedOfPool(poolId: string, { besidePlan }: { besidePlan: boolean }): Promise<string[]> {
    const rows = await this.sql.db
      .selectFrom("keys")
      .select("keys.id")
      .where("keys.workspace_id", "=", this.workspaceId)
      .where("keys.pool_id", "=", poolId)
      .where("keys.deleted_at", "is", null)
      .where(besidePlan ? raw<boolean>`not ${hasOwnLimit}` : isUnlimited)
      .execute();
    return rows.map(({ id }) => id);
  }

  /** Whether a plan limits those who have it. */
  async planHasLimit(planId: string): Promise<boolean> {
    const row = await this.sql.db
      .selectFrom("plans")
      .select("plans.id")
      .where("plans.workspace_id", "=", this.workspaceId)
      .where("plans.id", "=", planId)
      .where(planLimits)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Whether an identity limits its keys, by itself or by its plan; by its id, or by the id that the caller has for it. */
  async identityHasLimit(column: "id" | "external_id", value: string): Promise<boolean> {
    const row = await this.sql.db
      .selectFrom("identities")
      .select("identities.id")
      .where("identities.workspace_id", "=", this.workspaceId)
      .where(`identities.${column}`, "=", value)
      .where("identities.deleted_at", "is", null)
      .where(identityLimits)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** APIs with a policy, in the order of their ids: a bounded number. */
  apis(): Promise<PolicedApi[]> {
    return this.sql.db
      .selectFrom("apis")
      .select(["id", "name", "prefix", "policy"])
      .where("workspace_id", "=", this.workspaceId)
      .where("policy", "is not", null)
      .where("deleted_at", "is", null)
      .orderBy("id")
      .limit(APIS_EXAMINED_MAX)
      .execute();
  }

  /** Active keys of an API that do not obey its policy, the oldest first, at most `COUNTED_MAX`; `apis`: how many are examined. */
  async against(
    { id, prefix }: PolicedApi,
    { expiry, limitsRequired, prefixFixed }: Rules,
    apis: number,
    now: Instant,
  ): Promise<KeyAgainstPolicy[]> {
    if (expiry?.max === undefined && !limitsRequired && !prefixFixed) return [];
    const examined = this.sql.db
      .selectFrom("keys")
      .select(["id", "api_id", "name", "start", "enabled", "expires_at", "created_at", "concurrency", "pool_id"])
      .select("identity_id")
      .where("api_id", "=", id)
      .where("deleted_at", "is", null)
      .orderBy("created_at")
      .orderBy("id")
      .limit(Math.floor(KEYS_EXAMINED_MAX / apis))
      .as("keys");
    const rule = (isOn: unknown, isBroken: RawBuilder<unknown>) =>
      isOn ? raw<number>`case when ${isBroken} then 1 else 0 end` : raw<number>`0`;
    const judged = this.sql.db
      .selectFrom(examined)
      .select(["keys.id", "keys.api_id", "keys.name", "keys.start", "keys.expires_at", "keys.created_at"])
      .select([
        rule(
          expiry?.max !== undefined,
          raw`keys.expires_at is null or keys.expires_at > keys.created_at + ${expiry?.max ?? 0}`,
        ).as("expiry"),
        rule(limitsRequired, isUnlimited).as("unlimited"),
        rule(prefixFixed, this.#hidesPrefix(prefix)).as("prefix"),
      ])
      .where("keys.enabled", "=", 1)
      .where(raw<boolean>`(keys.expires_at is null or keys.expires_at > ${now})`)
      .as("judged");
    return this.sql.db
      .selectFrom(judged)
      .selectAll("judged")
      .where(raw<boolean>`judged.expiry + judged.unlimited + judged.prefix > 0`)
      .orderBy("judged.created_at")
      .orderBy("judged.id")
      .limit(COUNTED_MAX)
      .execute();
  }

  /** As `showsPrefix` of `policy.ts`, denied. */
  #hidesPrefix(prefix: string | null): RawBuilder<unknown> {
    const start = raw.ref<string>("keys.start");
    const hasUnderscore = (text: RawBuilder<string>) => this.sql.dialect.contains(text, "_");
    if (prefix === null) return raw`${start} = '' or ${hasUnderscore(start)}`;
    const lead = `${prefix}_`;
    const rest = raw<string>`substr(${start}, ${raw.lit(lead.length + 1)})`;
    return raw`substr(${start}, 1, ${raw.lit(lead.length)}) <> ${lead} or ${hasUnderscore(rest)}`;
  }
}

/** How often a part of the JSON of a plan's limits occurs. In a name its quotes would be escaped. */
const occurrences = (part: string) =>
  raw<number>`(length(plans.ratelimits) - length(replace(plans.ratelimits, ${raw.lit(part)}, ''))) / ${raw.lit(part.length)}`;

/** Whether a plan has a limit that denies: one in shadow mode does not. */
const planLimits = raw<boolean>`(plans.concurrency is not null
  or ${occurrences('"duration":')} > ${occurrences('"shadow":1')})`;

const hasLimitingPlan = (owner: "keys.pool_id" | "identities.id") => raw<boolean>`exists (
  select 1 from plan_assignments as assigned join plans on plans.id = assigned.plan_id
  where assigned.owner_id = ${raw.ref(owner)} and ${planLimits})`;

/** Whether a row of `identities` limits its keys. */
const identityLimits = raw<boolean>`(identities.concurrency is not null
  or exists (select 1 from ratelimits where ratelimits.identity_id = identities.id and ratelimits.shadow = 0)
  or ${hasLimitingPlan("identities.id")})`;

/** Whether a row of `keys`, or its identity, has a limit. */
const hasOwnLimit = raw<boolean>`(keys.concurrency is not null
  or exists (select 1 from ratelimits where ratelimits.key_id = keys.id and ratelimits.shadow = 0)
  or exists (select 1 from identities where identities.id = keys.identity_id and identities.deleted_at is null
    and ${identityLimits}))`;

/** Whether nothing limits a row of `keys`. */
const isUnlimited = raw<boolean>`(not ${hasOwnLimit} and not ${hasLimitingPlan("keys.pool_id")})`;
