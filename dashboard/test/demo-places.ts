import type { Dashboard } from "./dashboard.ts";

const DAY = 86_400_000;

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
  const { key } = await dashboard.ok("keys.createKey", { apiId, name: "CI deploy", prefix: "live" });
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
    namespace: `/ratelimits/${namespace.id}`,
    webhook: `/webhooks/${webhookId}`,
  };
}
