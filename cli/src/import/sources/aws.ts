import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { UsageError } from "../../output.ts";
import { type Fields, isObject } from "../fields.ts";
import type { PlannedPlan } from "../plans.ts";
import { keyOf, limitOf, type Mapped, presentObject, type Source } from "./source.ts";

const NAME_MAX = 255;

type Plan = Record<string, unknown> & { id: string };

/** The plans, and those of each key by its id. */
interface UsagePlans {
  byId: ReadonlyMap<string, Plan>;
  idsOfKey: ReadonlyMap<string, readonly string[]>;
}

/**
 * API keys of Amazon API Gateway: `get-api-keys --include-values`, or the CSV file of `import-api-keys`. `--with` gives
 * the usage plans, which become plans with their throttles; the quota of a day or a month becomes credits of each key.
 */
export const aws: Source = {
  mapping: ({ others, sourceApi }) => {
    const plans = plansOf(others);
    if (sourceApi !== undefined && plans.byId.size === 0) {
      throw new UsageError("--source-api: the API of a key is known from its usage plan. Give the plans with --with.");
    }
    return (row) => map(row, plans, sourceApi);
  },
  left: {
    id: null,
    createdDate: null,
    lastUpdatedDate: null,
    type: null,
  },
  algorithms: ["sha256"],
  others: "usage plans (get-usage-plans), and the keys of each",
  hasApis: true,
};

function map(row: Fields, plans: UsagePlans, sourceApi: string | undefined): Mapped {
  const key = row.text("value", "key");
  const listed = row.list("usagePlanIds");
  const ids = [
    ...new Set([...(Array.isArray(listed) ? listed : []), ...(plans.idsOfKey.get(row.text("id") ?? "") ?? [])]),
  ];
  const known = ids.map((id) => plans.byId.get(String(id))).filter((plan) => plan !== undefined);
  const chosen =
    sourceApi === undefined ? known : known.filter((plan) => stagesOf(plan).some(({ apiId }) => apiId === sourceApi));
  if (sourceApi !== undefined && chosen.length === 0)
    return { skipped: "is in no usage plan of the API of --source-api" };
  if (known.length < ids.length) {
    row.note("usagePlanIds", "the limits of its usage plan are not imported: give the plans with --with");
  }
  const name = row.text("name");
  if (name !== undefined && name.length > NAME_MAX)
    row.note("name", `names have at most ${NAME_MAX} characters: it is cut`);
  const { plan, credits } = allowanceOf(row, chosen);
  const mapped = keyOf(
    key === undefined ? undefined : hashSecret(key),
    "has no value; export the keys with --include-values",
    {
      name: name?.slice(0, NAME_MAX),
      externalId: row.text("customerId"),
      enabled: row.boolean("enabled"),
      meta: presentObject({
        description: row.text("description"),
        tags: nonEmpty(row.json("tags")),
        usagePlanIds: nonEmpty(ids),
        stageKeys: nonEmpty(row.list("stageKeys")),
      }),
      credits,
    },
  );
  return { ...mapped, ...("key" in mapped && plan && { plan }) };
}

function nonEmpty(value: unknown): unknown {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0 ? undefined : value;
}

const DAY_SECONDS = 86_400;

/** The usage plan of a key as a plan, and the credits that the key has of its quota. */
function allowanceOf(row: Fields, plans: readonly Plan[]): { plan?: PlannedPlan; credits?: object } {
  if (plans.length > 1) {
    row.note("usagePlanIds", "it has several usage plans, of which none was imported: choose one with --source-api");
    return {};
  }
  const [usagePlan] = plans;
  if (usagePlan === undefined) return {};
  const { id, name, throttle, quota, apiStages } = usagePlan;
  const limit = isObject(throttle) ? limitOf("throttle", throttle.rateLimit, 1) : undefined;
  if (limit && isObject(throttle) && Number(throttle.burstLimit) > Number(throttle.rateLimit)) {
    row.note("throttle.burstLimit", "a limit here has no burst: raise the limit if the rate alone is too low");
  }
  if (
    Array.isArray(apiStages) &&
    apiStages.some((stage) => isObject(stage) && nonEmpty(stage.throttle) !== undefined)
  ) {
    row.note("apiStages.throttle", "throttles of single methods are not imported: name a limit at the verification");
  }
  const planOf = (...limits: (object | undefined)[]): PlannedPlan => ({
    source: `aws usage plan ${id}`,
    name: typeof name === "string" && name !== "" ? name : id,
    ratelimits: limits.filter((one) => one !== undefined),
  });
  if (!isObject(quota)) return { plan: planOf(limit) };
  row.note("quota", "what is used of a quota is not imported: the key begins with the whole quota");
  if (quota.period === "WEEK") return { plan: planOf(limit, limitOf("quota", quota.limit, 7 * DAY_SECONDS)) };
  const refill =
    quota.period === "DAY"
      ? { interval: "daily", amount: quota.limit }
      : { interval: "monthly", amount: quota.limit, refillDay: 1 };
  return { plan: planOf(limit), credits: { remaining: quota.limit, refill } };
}

function stagesOf(plan: Plan): Record<string, unknown>[] {
  return Array.isArray(plan.apiStages) ? plan.apiStages.filter(isObject) : [];
}

/**
 * Usage plans from answers of `get-usage-plans`, and which keys they have from `{"usagePlanId": …, "items": […]}`, where
 * `items` is that of `get-usage-plan-keys`.
 */
function plansOf(documents: readonly unknown[]): UsagePlans {
  const byId = new Map<string, Plan>();
  const idsOfKey = new Map<string, string[]>();
  for (const document of documents) {
    const items = isObject(document) ? document.items : undefined;
    if (!isObject(document) || !Array.isArray(items)) {
      throw new UsageError(
        "--with: a file has no list `items`. Give the answers of get-usage-plans and get-usage-plan-keys.",
      );
    }
    const planId = document.usagePlanId;
    for (const item of items.filter(isObject)) {
      const id = String(item.id);
      if (typeof planId === "string") idsOfKey.set(id, [...(idsOfKey.get(id) ?? []), planId]);
      else byId.set(id, { ...item, id });
    }
  }
  return { byId, idsOfKey };
}
