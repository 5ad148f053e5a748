import { DatabaseSync } from "node:sqlite";
import { eventually } from "../../server/test/process.ts";
import type { Dashboard } from "./dashboard.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const owners = ["acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "wonka"];
const names = ["ci-deploy", "mobile app", "backend", "webhooks", "reporting", "staging", "partner feed", "data import"];
const paths = ["/v1/charges", "/v1/refunds", "/v1/payouts"];
const CONCURRENCY = 16;

/** Fills the workspace with APIs, keys in every state, roles, limits and verifications with every code. */
export async function fill(dashboard: Dashboard): Promise<{ apiId: string; keyId: string }> {
  const { apiId } = await dashboard.ok("apis.createApi", { name: "payments" });
  for (const name of ["search", "<b>beta</b>"]) await dashboard.ok("apis.createApi", { name });
  await dashboard.ok("permissions.createRole", { name: "reader", permissions: ["documents.read"] });
  await dashboard.ok("permissions.createRole", {
    name: "editor",
    description: "Reads and writes documents",
    permissions: ["documents.read", "documents.write"],
  });
  const now = Date.now();
  const keys: { keyId: string; key: string }[] = [];
  await inParallel(90, async (index) => {
    keys[index] = await dashboard.ok("keys.createKey", {
      apiId,
      prefix: index % 4 === 3 ? "test" : "live",
      name: index === 7 ? "<img src=x onerror=alert(1)>" : `${names[index % names.length]}-${index}`,
      ...(index % 9 !== 8 && { externalId: owners[(index * 5) % owners.length] }),
      ...(index % 6 === 0 && { roles: ["reader"], permissions: ["billing.view"] }),
      ...(index % 5 === 0 && { expires: now + (2 + index) * DAY }),
      ...(index % 7 === 0 && {
        credits: { remaining: 40 + index * 90, refill: { interval: "monthly", amount: 10_000, refillDay: 1 } },
      }),
      ...(index % 3 === 0 && {
        ratelimits: [{ name: "requests", limit: index === 0 ? 40 : 1_000, duration: 3_600_000, autoApply: true }],
      }),
      ...(index % 12 === 0 && { meta: { plan: "pro", region: "eu-west-1" } }),
      enabled: index % 13 !== 12,
    });
  });
  await inParallel(900, (index) =>
    dashboard.ok("keys.verifyKey", {
      key: keys[Math.floor((index * index) / 900) % (index % 3 === 0 ? 3 : keys.length)]!.key,
      tags: [`path=${paths[index % paths.length]}`],
      ...(index % 17 === 0 && { permissions: "documents.write" }),
    }),
  );
  await inParallel(120, (index) =>
    dashboard.ok("ratelimits.limit", {
      namespace: index % 3 === 0 ? "email" : "login",
      identifier: owners[index % 5],
      limit: 10,
      duration: 3_600_000,
    }),
  );
  await addHistory(dashboard, apiId);
  return { apiId, keyId: keys[0]!.keyId };
}

/**
 * Repeats the traffic of this hour in the hours of 7 days and the days of 30, in amounts that follow the time of day, so
 * that charts have something to show. Only for SQLite.
 */
async function addHistory(dashboard: Dashboard, apiId: string): Promise<void> {
  const end = Math.ceil(Date.now() / HOUR) * HOUR;
  await eventually("the verifications to be in the analytics", async () => {
    const { total } = await dashboard.ok("analytics.getApiStats", { apiId, start: end - 2 * HOUR, end });
    return total >= 900;
  });
  const database = new DatabaseSync(dashboard.analyticsFile);
  try {
    database.exec("pragma busy_timeout = 10000; begin immediate");
    repeat(database, "analytics_hours", HOUR, 7 * 24, (time) => {
      const hour = new Date(time).getUTCHours();
      return 0.15 + 0.85 * Math.max(0, Math.sin(((hour - 5) / 16) * Math.PI));
    });
    repeat(database, "analytics_days", DAY, 30, (time) => ([0, 6].includes(new Date(time).getUTCDay()) ? 5 : 11));
    repeatUsage(database, "analytics_usage_hours", HOUR, 7 * 24);
    repeatUsage(database, "analytics_usage_days", DAY, 30);
    database.exec("commit");
  } finally {
    database.close();
  }
}

/** Copies the newest bucket of a table into the ones before it, each with a factor. */
function repeat(
  database: DatabaseSync,
  table: string,
  length: number,
  count: number,
  factorAt: (time: number) => number,
) {
  const copy = database.prepare(
    `insert or ignore into ${table}
     select ?, subject, part, outcome, label, cast(ceil(count * ?) as integer), cast(ceil(amount * ?) as integer),
       cast(ceil(latency_us * ?) as integer)
     from ${table} where time = (select max(time) from ${table})`,
  );
  const { newest } = database.prepare(`select max(time) as newest from ${table}`).get() as { newest: number };
  for (let index = 1; index < count; index++) {
    const time = newest - index * length;
    // The same in every run, but not the same in every bucket.
    const factor = factorAt(time) * (0.8 + (((index * 7919) % 100) / 100) * 0.4);
    copy.run(time, factor, factor, factor);
  }
}

/** The same for a table of the usage of keys, without factors. */
function repeatUsage(database: DatabaseSync, table: string, length: number, count: number) {
  const copy = database.prepare(
    `insert or ignore into ${table}
     select time - ?, workspace_id, key_id, identity_id, outcome, api_id, count, credits_spent
     from ${table} where time = (select max(time) from ${table})`,
  );
  for (let index = 1; index < count; index++) copy.run(index * length);
}

async function inParallel(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  const waiting = Array.from({ length: count }, (_, index) => index).values();
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const index of waiting) await work(index);
    }),
  );
}
