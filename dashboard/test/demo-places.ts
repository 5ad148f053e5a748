import type { Dashboard } from "./dashboard.ts";

const DAY = 86_400_000;

/** A tree of budgets in every state. */
async function demoBudgets(dashboard: Dashboard): Promise<{ company: string; team: string }> {
  const create = async (body: object): Promise<string> =>
    (await dashboard.ok("budgets.createBudget", { unit: "usd_micro", ...body })).budgetId;
  const refill = { interval: "monthly", amount: 300_000_000, timeZone: "Europe/Berlin" };
  const company = await create({ name: "Company", remaining: 300_000_000, refill, thresholds: [50, 80, 100] });
  const engineering = await create({ name: "Engineering", parentId: company, remaining: 200, thresholds: [80] });
  const team = await create({ name: "Search team", parentId: engineering, remaining: 100, thresholds: [10, 50] });
  await create({ name: "Contractors with a name that is longer than its column", parentId: team, remaining: 0 });
  await create({ name: "Research", parentId: company, remaining: 1_234_567_890, onEmpty: "allow" });
  const { apiId } = await dashboard.ok("apis.createApi", { name: "Spending" });
  const overspent = await create({ name: "Counted", unit: "token", remaining: 100, onEmpty: "allow" });
  for (const [budgetId, cost] of [
    [team, 60],
    [overspent, 150],
  ] as const) {
    const { key } = await dashboard.ok("keys.createKey", { apiId, budgetId });
    await dashboard.ok("keys.verifyKey", { key, credits: { cost } });
  }
  await demoHolds(dashboard, apiId, team);
  return { company, team };
}

/** Work that is being done: calls that hold a part of a budget and a slot, and some that have ended. */
async function demoHolds(dashboard: Dashboard, apiId: string, budgetId: string): Promise<void> {
  const concurrency = [{ name: "streams", limit: 5 }];
  const { key } = await dashboard.ok("keys.createKey", { apiId, name: "Model gateway", budgetId, concurrency });
  for (const [cost, settled] of [
    [6, 4],
    [4, 0],
    [9, undefined],
    [7, undefined],
    [3, undefined],
  ] as const) {
    const { hold } = await dashboard.ok("keys.verifyKey", { key, credits: { cost }, hold: { ttl: 900_000 } });
    if (settled !== undefined) await dashboard.ok("holds.settleHold", { holdId: hold.holdId, credits: settled });
  }
}

/** Plans, one of which many keys have, and a few of these a limit of their own. */
async function demoPlans(dashboard: Dashboard, apiId: string): Promise<string> {
  const requests = (limit: number) => ({ name: "requests", limit, duration: 60_000, autoApply: true });
  await dashboard.ok("plans.createPlan", { name: "silver", ratelimits: [requests(60)] });
  const { planId } = await dashboard.ok("plans.createPlan", {
    name: "gold",
    ratelimits: [requests(600)],
    permissions: ["documents.read", "exports.create"],
  });
  for (const name of ["Acme, production", "Acme, staging", "Globex"]) {
    await dashboard.ok("keys.createKey", { apiId, name, plan: "gold", ratelimits: [requests(5_000)] });
  }
  let cursor: string | undefined;
  for (let page = 0; page < 8; page++) {
    const body = { apiId, setPlan: "gold", limit: 100, ...(cursor && { cursor }) };
    ({ cursor } = await dashboard.ok("apis.updateKeys", body));
    if (cursor === undefined) break;
  }
  await dashboard.ok("identities.createIdentity", { externalId: "umbrella", plan: "gold" });
  return `/plans/${planId}`;
}

/** Enough for tables that scroll and charts that are full. */
export const DEMO_KEYS = 3_000;

/** Paths of the pages of single resources in the workspace of the demo, each with much to show. Makes some decisions. */
export async function demoPlaces(dashboard: Dashboard) {
  const apis: { id: string; name: string }[] = await dashboard.ok("apis.listApis", {});
  const counts = await Promise.all(apis.map(({ id: apiId }) => dashboard.ok("apis.countKeys", { apiId })));
  const largest = counts.reduce((best, { count }, index) => (count > counts[best].count ? index : best), 0);
  const apiId = apis[largest]!.id;
  const range = { start: Date.now() - 7 * DAY, end: Date.now(), granularity: "day" };
  const { keys } = await dashboard.ok("analytics.listTopKeys", { apiId, limit: 10, ...range });
  const { keyId, externalId } = keys.find(({ externalId }: { externalId?: string }) => externalId !== undefined);
  const { id: identityId } = await dashboard.ok("identities.getIdentity", { identity: externalId });
  const [namespace] = await dashboard.ok("ratelimits.listNamespaces", { limit: 1 });
  // It is made before the events: what is sent to it fails, because its name does not exist.
  const { webhookId } = await dashboard.ok("webhooks.createWebhook", {
    endpoint: "https://billing.acme.invalid/latchkey",
    name: "Billing",
  });
  const { company, team } = await demoBudgets(dashboard);
  const { key } = await dashboard.ok("keys.createKey", { apiId, name: "CI deploy", prefix: "live", budgetId: team });
  await dashboard.ok("keys.updateKey", { keyId, budgetId: team });
  await dashboard.ok("identities.updateIdentity", { identity: identityId, budgetId: company });
  for (let call = 0; call < 12; call++) {
    const permissions = call % 4 === 3 ? "billing.write" : undefined;
    await dashboard.ok("keys.verifyKey", { key, tags: ["path=/v1/charges"], permissions });
    const limit = { limit: 8, duration: 3_600_000 };
    await dashboard.ok("ratelimits.limit", { namespace: namespace.name, identifier: "203.0.113.7", ...limit });
  }
  return {
    keyId,
    api: `/apis/${apiId}`,
    key: `/apis/${apiId}/keys/${keyId}`,
    identity: `/identities/${identityId}`,
    budget: `/budgets/${team}`,
    plan: await demoPlans(dashboard, apiId),
    namespace: `/ratelimits/${namespace.id}`,
    webhook: `/webhooks/${webhookId}`,
  };
}
