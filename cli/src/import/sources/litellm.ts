import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import type { PlannedBudget } from "../budgets.ts";
import { litellmDumpRows, restrictions } from "../dump/litellm.ts";
import { Fields, fieldName } from "../fields.ts";
import type { PlannedPlan } from "../plans.ts";
import { keyOf, limitOf, present, presentObject, type Source } from "./source.ts";

const OTHER_TABLE = "is in another table: give a dump of the whole database, so that its budget is imported";
const BUDGET = "budgets of single models are not imported: give each model an API and keys of its own";
const TOKENS =
  "becomes the limit `tokens`, which is charged by verifications that name it with a cost, such as ratelimits: " +
  '[{"name":"tokens","cost":911}]';
const DAILY_TOKENS = "is not imported: a key has one limit of tokens, which is that of a minute";
const ACCESS = "is metadata here and restricts nothing: check it in your application, or make it permissions";
const MICRO = "has parts of a millionth of a dollar, in which budgets count here, and is rounded";

const MICRO_DOLLARS = 1_000_000;
const DOLLARS_MAX = 1_000_000_000;
const UNIT = "usd_micro";
const NAME_LENGTH_MAX = 255;

/** The interval of a refill, by `budget_duration`. LiteLLM too resets at the start of the hour, day, week or month. */
const intervals: Readonly<Record<string, string>> = {
  "1h": "hourly",
  hourly: "hourly",
  "24h": "daily",
  "1d": "daily",
  daily: "daily",
  "7d": "weekly",
  "1w": "weekly",
  weekly: "weekly",
  "30d": "monthly",
  "1mo": "monthly",
  monthly: "monthly",
};

/** The table `LiteLLM_VerificationToken`: `token` is the SHA-256 as hex. With a dump, also budgets of teams and users. */
export const litellm: Source = {
  mapping: () => map,
  left: {
    keyName: null,
    totalSpend: null,
    modelSpend: null,
    createdAt: null,
    createdBy: null,
    updatedAt: null,
    updatedBy: null,
    lastActive: null,
    settingsUpdatedAt: null,
    softBudgetCooldown: null,
    budgetResetAt: null,
    rotationCount: null,
    lastRotationAt: null,
    keyType: null,
    tpdLimit: DAILY_TOKENS,
    modelMaxBudget: BUDGET,
    budgetFallbacks: BUDGET,
    budgetLimits: BUDGET,
    permissions: "permissions of LiteLLM are about its proxy",
    allowedRoutes: "routes of LiteLLM are not those of your API: use permissions",
    autoRotate: "keys are rotated with keys.rerollKey, when you call it",
    rotationInterval: "keys are rotated with keys.rerollKey, when you call it",
    keyRotationAt: "keys are rotated with keys.rerollKey, when you call it",
    ...Object.fromEntries(
      ["aliases", "config", "routerSettings", "allowedCacheControls", "policies", "accessGroupIds"].map((name) => [
        name,
        "it configures the proxy of LiteLLM",
      ]),
    ),
    ...Object.fromEntries(
      ["agentId", "projectId", "organizationId", "objectPermissionId"].map((name) => [
        name,
        "it refers to another table of LiteLLM",
      ]),
    ),
  },
  dump: litellmDumpRows,
  algorithms: ["sha256"],
};

function map(row: Fields) {
  const teamId = row.text("teamId");
  if (teamId === "litellm-dashboard") return { skipped: "is a session of the dashboard of LiteLLM" };
  const token = row.text("token");
  const isPlain = token?.startsWith("sk-") === true;
  if (token !== undefined && !isPlain && !/^[0-9a-f]{64}$/i.test(token)) {
    return { rejected: "has a token that is neither a SHA-256 as hex nor a key string that begins with sk-" };
  }
  const own = allowanceOf(row);
  if (own !== undefined && "rejected" in own) return { rejected: `has ${own.rejected}` };
  if (own?.isRounded) row.note("max_budget", MICRO);
  const plan = planOf(row);
  const [budget, isBlocked] = [sharedBudget(row), isTeamBlocked(row)];
  if (budget !== undefined && "rejected" in budget) return budget;

  const metadata = row.json("metadata");
  const kept = presentObject({
    models: row.list("models"),
    teamId,
    spend: row.number("spend"),
    maxParallelRequests: row.number("maxParallelRequests"),
  });
  if (kept?.maxParallelRequests !== undefined) {
    row.note("max_parallel_requests", "requests at the same time are not limited here");
  }
  if (Array.isArray(kept?.models) && kept.models.length > 0) row.note("models", ACCESS);
  const ratelimits = limitsOf(row, row);
  const mapped = keyOf(isPlain ? hashSecret(token) : token, "has no token", {
    name: row.text("keyAlias", "keyName"),
    externalId: row.text("userId", "teamId"),
    meta: presentObject({ ...(typeof metadata === "object" ? metadata : {}), ...(kept && { litellm: kept }) }),
    expires: row.time("expires"),
    enabled: row.boolean("blocked") === true || isBlocked ? false : undefined,
    credits: own && present({ remaining: own.remaining, refill: own.refill }),
    ratelimits: ratelimits.length > 0 ? ratelimits : undefined,
  });
  return { ...mapped, ...("key" in mapped && { ...(budget && { budget }), ...(plan && { plan }) }) };
}

/** The limits of the budget table's row of a key, which all keys with it share as a plan; undefined if it has none. */
function planOf(row: Fields): PlannedPlan | undefined {
  const found = row.object("budget");
  const id = found?.budget_id;
  if (found === undefined || typeof id !== "string") return undefined;
  const fields = new Fields(Object.entries(found));
  const ratelimits = limitsOf(fields, row);
  return ratelimits.length === 0 ? undefined : { source: `litellm budget ${id}`, name: id, ratelimits };
}

/** The limits of a row: a key without a limit of its own has that of its plan. */
function limitsOf(fields: Fields, noted: Fields) {
  const tokens = limitOf("tokens", fields.number("tpmLimit"), 60);
  if (tokens) noted.note("tpm_limit", TOKENS);
  return [limitOf("requests", fields.number("rpmLimit"), 60), tokens && { ...tokens, autoApply: false }].filter(
    (limit) => limit !== undefined,
  );
}

/** What may be spent, in millionths of a dollar. */
interface Allowance extends Pick<PlannedBudget, "remaining" | "refill"> {
  readonly isRounded: boolean;
}

/** What is left of `max_budget`, refilled as `budget_duration` says; undefined without one. */
function allowanceOf(row: Fields): Allowance | { rejected: string } | undefined {
  const [max, spend, duration] = [row.number("maxBudget"), row.number("spend"), row.text("budgetDuration")];
  if (typeof max !== "number") return undefined;
  if (!(max >= 0 && max <= DOLLARS_MAX)) {
    return { rejected: `a max_budget that is not from 0 to ${DOLLARS_MAX.toLocaleString("en")} dollars` };
  }
  const interval = duration === undefined ? undefined : intervals[duration.trim().toLowerCase()];
  if (duration !== undefined && interval === undefined) {
    return { rejected: "a budget_duration that no refill here has: change it to 1h, 1d, 7d or 30d" };
  }
  const amount = Math.round(max * MICRO_DOLLARS);
  const spent = typeof spend === "number" ? Math.round(spend * MICRO_DOLLARS) : 0;
  return {
    remaining: Math.min(amount, Math.max(0, amount - spent)),
    // A refill has an amount. Without one, 0 stays 0.
    refill: interval === undefined || amount === 0 ? undefined : { interval, amount },
    isRounded: Math.abs(max * MICRO_DOLLARS - amount) > 0.001,
  };
}

/**
 * The budget that the key shares with others: that of its user in its team, below that of the team, below that of its
 * organization. A key without a team has that of its user. Undefined: it has none.
 */
function sharedBudget(row: Fields): PlannedBudget | { rejected: string } | undefined {
  const [teamId, userId] = [row.text("teamId"), row.text("userId")];
  if (row.text("budgetId") !== undefined) joined(row, "budget", "budget_id");
  if (teamId === undefined) {
    const user = userId === undefined ? undefined : joined(row, "user", "user_id");
    return user && planned(row, user, `litellm user ${userId}`, user.text("userAlias", "userId"));
  }
  const team = joined(row, "team", "team_id");
  if (team === undefined) return undefined;
  let budget: ReturnType<typeof planned>;
  const organizationId = team.text("organizationId");
  const organization = organizationId === undefined ? undefined : joined(row, "organization", "organization_id");
  if (organization) {
    const name = organization.text("organizationAlias", "organizationId");
    budget = planned(row, organization, `litellm organization ${organizationId}`, name);
  }
  budget = planned(row, team, `litellm team ${teamId}`, team.text("teamAlias", "teamId"), budget);
  // Users without a budget of their own in a team often have no row.
  const membership = fieldsOf(row, "membership", "team_id");
  if (membership === undefined) return budget;
  return planned(row, membership, `litellm team ${teamId} user ${userId}`, userId, budget);
}

/** A row that the key refers to. That the file does not have it is noted. */
function joined(row: Fields, name: string, reference: string): Fields | undefined {
  const fields = fieldsOf(row, name, reference);
  if (fields === undefined) row.note(reference, OTHER_TABLE);
  return fields;
}

/** What the plan of a row of the budget table has. */
const limitColumns: ReadonlySet<string> = new Set(["tpm_limit", "rpm_limit"]);

/** A row that the key refers to. What it restricts besides a budget is noted. */
function fieldsOf(row: Fields, name: string, reference: string): Fields | undefined {
  const found = row.object(name);
  if (found === undefined) return undefined;
  const fields = new Fields(Object.entries(found));
  const isLeft = new Set(fields.unread());
  const left = restrictions.filter(
    (restriction) => isLeft.has(fieldName(restriction)) && !(name === "budget" && limitColumns.has(restriction)),
  );
  if (left.length > 0) row.note(reference, `of its ${name} are not imported: ${left.join(", ")}`);
  return fields;
}

/** The budget of a row, or that of its parent if it has none. */
function planned(
  row: Fields,
  of: Fields,
  source: string,
  name = source,
  parent?: PlannedBudget | { rejected: string },
): PlannedBudget | { rejected: string } | undefined {
  if (parent !== undefined && "rejected" in parent) return parent;
  const allowance = allowanceOf(of);
  if (allowance === undefined) return parent;
  if ("rejected" in allowance) return { rejected: `belongs to ${source}, which has ${allowance.rejected}` };
  const { remaining, refill, isRounded } = allowance;
  if (isRounded) row.note("max_budget", MICRO);
  return { source, name: name.slice(0, NAME_LENGTH_MAX), unit: UNIT, remaining, refill, parent };
}

/** Whether LiteLLM refuses all keys of the team. */
function isTeamBlocked(row: Fields): boolean {
  const team = row.object("team");
  if (team === undefined || new Fields(Object.entries(team)).boolean("blocked") !== true) return false;
  row.note("team_id", "its team is blocked, so it is disabled here");
  return true;
}
