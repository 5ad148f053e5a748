import { hashSecret } from "../../../../../../engine/src/crypto/hash.ts";
import { keysIn } from "../dump/rows.ts";
import type { Fields } from "../fields.ts";
import { keyOf, limitOf, presentObject, type Source } from "./source.ts";

const BUDGET = "budgets in money are not enforced here: give the key credits, and charge what a request costs";
const TOKENS = "limits here count requests: charge tokens with ratelimits.limit and a cost";
const ACCESS = "is metadata here and restricts nothing: check it in your application, or make it permissions";

/** The table `LiteLLM_VerificationToken`: `token` is the SHA-256 as hex. Budgets and models become metadata. */
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
    tpdLimit: TOKENS,
    budgetId: BUDGET,
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
  dump: keysIn("LiteLLM_VerificationToken", "token"),
  algorithms: ["sha256"],
};

function map(row: Fields) {
  if (row.text("teamId") === "litellm-dashboard") return { skipped: "is a session of the dashboard of LiteLLM" };
  const token = row.text("token");
  const isPlain = token?.startsWith("sk-") === true;
  if (token !== undefined && !isPlain && !/^[0-9a-f]{64}$/i.test(token)) {
    return { rejected: "has a token that is neither a SHA-256 as hex nor a key string that begins with sk-" };
  }
  const metadata = row.json("metadata");
  const own = presentObject({
    models: row.list("models"),
    teamId: row.text("teamId"),
    spend: row.number("spend"),
    maxBudget: row.number("maxBudget"),
    budgetDuration: row.text("budgetDuration"),
    tpmLimit: row.number("tpmLimit"),
    maxParallelRequests: row.number("maxParallelRequests"),
  });
  if (own?.maxBudget !== undefined) row.note("max_budget", BUDGET);
  if (own?.tpmLimit !== undefined) row.note("tpm_limit", TOKENS);
  if (own?.maxParallelRequests !== undefined) {
    row.note("max_parallel_requests", "requests at the same time are not limited here");
  }
  if (Array.isArray(own?.models) && own.models.length > 0) row.note("models", ACCESS);
  const limit = limitOf("requests", row.number("rpmLimit"), 60);
  return keyOf(isPlain ? hashSecret(token) : token, "has no token", {
    name: row.text("keyAlias", "keyName"),
    externalId: row.text("userId", "teamId"),
    meta: presentObject({ ...(typeof metadata === "object" ? metadata : {}), ...(own && { litellm: own }) }),
    expires: row.time("expires"),
    enabled: row.boolean("blocked") === true ? false : undefined,
    ratelimits: limit && [limit],
  });
}
