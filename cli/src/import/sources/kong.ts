import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { kongDumpRows } from "../dump/kong.ts";
import { type Fields, isObject } from "../fields.ts";
import type { PlannedPlan } from "../plans.ts";
import { credentialsInConfiguration, credentialsOf } from "./kong-configuration.ts";
import { keyOf, limitOf, presentObject, type Source } from "./source.ts";

const GROUPS = "groups are metadata here and restrict nothing: make them permissions or roles";

/**
 * The credentials of the plugin key-auth of Kong: from `/key-auths` of the Admin API, from a dump of the database, from the
 * table `keyauth_credentials`, or from a declarative configuration. Kong stores key strings.
 */
export const kong: Source = {
  mapping: ({ others, now }) => {
    const consumers = consumersOf(others);
    return (row) => map(row, consumers, now);
  },
  left: { id: null, createdAt: null, updatedAt: null, wsId: null, cacheKey: null },
  unfold: (row) => (Array.isArray(row.keyauth_credentials) ? credentialsOf(row) : [row]),
  listIn: credentialsInConfiguration,
  dump: kongDumpRows,
  algorithms: ["sha256"],
  others: "consumers of the Admin API (/consumers)",
};

function map(row: Fields, consumers: ReadonlyMap<string, Record<string, unknown>>, now: number) {
  if (row.value("keyIdent") !== undefined) {
    return {
      rejected:
        "is a credential of key-auth-enc, whose key strings are encrypted. Read them from the Admin API of Kong, which decrypts them",
    };
  }
  const key = row.value("key");
  if (key === undefined && row.value("username", "customId") !== undefined) {
    return { skipped: "is a consumer without credentials of key-auth" };
  }
  if (key !== undefined && typeof key !== "string") return { rejected: "has a key that is no text: put it in quotes" };
  if (key !== undefined && /^(\{vault:\/\/.*\}|\$\{\{.*\}\})$/.test(key)) {
    return {
      rejected: "has a reference in the place of its key, which is in a vault or a variable: write the key there",
    };
  }
  const nested = row.object("consumer");
  const id = row.text("consumerId") ?? nested?.id ?? (nested === undefined ? row.text("consumer") : undefined);
  const consumer = { ...nested, ...consumers.get(String(id)) };
  const named = [consumer.custom_id, consumer.username].find((name) => typeof name === "string" && name !== "");
  if (named === undefined && id !== undefined) {
    row.note("consumer", "the external id is the id of the consumer. Give --with consumers.json to import its name");
  }
  const groups = namesIn(row.json("acls"), "group");
  const memberships = row.json("groups");
  const consumerGroups = namesIn(memberships, "name");
  const own = limitingPlugins(row.json("plugins"));
  const [plan, ...otherPlans] = plansOf(memberships, new Set(own.map(({ name }) => name)));
  if (groups) row.note("acls", GROUPS);
  if (consumerGroups && !plan) row.note("groups", GROUPS);
  if (plan && otherPlans.length > 0) {
    row.note("groups", `of its consumer groups with limits, only ${plan.name} is its plan`);
  }
  const { limits, allowedIps } = pluginsOf(row);
  const ttl = row.number("ttl");
  const mapped = keyOf(key === undefined ? undefined : hashSecret(key), "has no key", {
    name: row.text("id"),
    externalId: named ?? id,
    meta: presentObject({ tags: row.list("tags"), kong: presentObject({ groups, consumerGroups }) }),
    // The Admin API gives the remaining seconds; the table has the time of the end.
    expires: typeof ttl === "number" ? now + ttl * 1_000 : row.time("ttl"),
    ratelimits: limits.length > 0 ? limits : undefined,
    allowedIps,
  });
  return { ...mapped, ...("key" in mapped && plan && { plan }) };
}

/** The consumer groups whose plugins limit their consumers, as plans. In Kong a plugin of the consumer comes before theirs. */
function plansOf(memberships: unknown, own: ReadonlySet<unknown>): PlannedPlan[] {
  return (Array.isArray(memberships) ? memberships.filter(isObject) : []).flatMap(({ name, plugins }) => {
    const limiting = limitingPlugins(plugins);
    const limits = limiting.flatMap(({ name, config }) => (isObject(config) ? limitsOfPlugin(name, config) : []));
    if (typeof name !== "string" || limits.length === 0 || limiting.every((plugin) => own.has(plugin.name))) return [];
    const ratelimits = [...new Map(limits.map((limit) => [limit.name, limit])).values()];
    return [{ source: `kong consumer group ${name}`, name, ratelimits }];
  });
}

/** The plugins of a consumer or a group that limit its calls for every service. */
function limitingPlugins(plugins: unknown): Record<string, unknown>[] {
  return (Array.isArray(plugins) ? plugins.filter(isObject) : []).filter(
    ({ name, enabled, service, route }) => isLimit(name) && enabled !== false && !service && !route,
  );
}

function isLimit(name: unknown): boolean {
  return name === "rate-limiting" || name === "rate-limiting-advanced";
}

/** The limits of a plugin. */
function limitsOfPlugin(name: unknown, config: Record<string, unknown>) {
  if (name === "rate-limiting") return limitsOfPeriods(config);
  return name === "rate-limiting-advanced" ? limitsOfWindows(config) : [];
}

function namesIn(list: unknown, member: string): string[] | undefined {
  const names = (Array.isArray(list) ? list : []).map((one) => (isObject(one) ? one[member] : one));
  const texts = names.filter((name) => typeof name === "string");
  return texts.length > 0 ? texts : undefined;
}

const DAY = 24 * 3_600;
/** The windows of the plugin rate-limiting, in seconds. */
const windows = { second: 1, minute: 60, hour: 3_600, day: DAY, month: 30 * DAY, year: 365 * DAY };

/** The limits and the addresses of the plugins of a consumer. */
function pluginsOf(row: Fields) {
  const list = row.json("plugins");
  const plugins = (Array.isArray(list) ? list.filter(isObject) : []).filter(({ enabled }) => enabled !== false);
  const notes = new Set<string>();
  const allowedIps = plugins.map(allowedIpsOf).find((cidrs) => cidrs !== undefined);
  if (!plugins.every((plugin) => isLimit(plugin.name) || allowedIpsOf(plugin) !== undefined)) {
    notes.add("plugins of a consumer other than rate-limiting and ip-restriction with `allow` are not imported");
  }
  const limits = new Map<string, NonNullable<ReturnType<typeof limitOf>>>();
  for (const { name, config, service, route } of plugins.filter(({ name }) => isLimit(name))) {
    if (!isObject(config)) continue;
    const by = name === "rate-limiting" ? config.limit_by : config.identifier;
    if (service || route || (by !== undefined && by !== null && by !== "consumer" && by !== "credential")) {
      notes.add(
        "a rate limit for one service or route, or by something else than the consumer, is not imported: charge it with ratelimits.limit",
      );
      continue;
    }
    const found = limitsOfPlugin(name, config);
    for (const limit of found) limits.set(limit.name, limit);
    if (found.length > 0 && by !== "credential") {
      notes.add(
        "the rate limit of the consumer counts for each of its keys: to let them share it, set it with identities.updateIdentity",
      );
    }
  }
  for (const note of notes) row.note("plugins", note);
  return { limits: [...limits.values()], allowedIps };
}

/** The addresses that an ip-restriction of a consumer allows; undefined if it says more than that, or is another plugin. */
function allowedIpsOf({ name, config, service, route }: Record<string, unknown>): unknown[] | undefined {
  if (name !== "ip-restriction" || service || route || !isObject(config)) return undefined;
  const listAt = (...members: string[]) => {
    const lists = members.map((member) => config[member]).filter(Array.isArray);
    return lists.find((list) => list.length > 0);
  };
  return listAt("deny", "blacklist") === undefined ? listAt("allow", "whitelist") : undefined;
}

function limitsOfPeriods(config: Record<string, unknown>) {
  return Object.entries(windows)
    .map(([name, seconds]) => limitOf(name, config[name], seconds))
    .filter((limit) => limit !== undefined);
}

/** rate-limiting-advanced has a list of limits and one of windows. */
function limitsOfWindows({ limit, window_size: seconds }: Record<string, unknown>) {
  const sizes = listOf(seconds);
  return listOf(limit)
    .map((one, i) => limitOf(`${sizes[i]} s`, one, sizes[i]))
    .filter((limit) => limit !== undefined);
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** The consumers in answers of the Admin API, by their id. */
function consumersOf(documents: readonly unknown[]): ReadonlyMap<string, Record<string, unknown>> {
  const consumers = documents.flatMap((document) =>
    Array.isArray(document) ? document : isObject(document) && Array.isArray(document.data) ? document.data : [],
  );
  return new Map(consumers.filter(isObject).map((consumer) => [String(consumer.id), consumer]));
}
