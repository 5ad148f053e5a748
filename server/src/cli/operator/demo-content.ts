import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { systemSecrets } from "../../../../engine/src/crypto/secret.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { refillColumns } from "../../features/credits/record.ts";
import type { DemoRows } from "../../platform/store/demo.ts";
import { fold } from "../../platform/store/search.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A key of the demo workspace, as far as its traffic depends on it. */
export interface DemoKey {
  readonly id: string;
  readonly apiId: string;
  readonly identityId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly isEnabled: boolean;
  readonly hasCredits: boolean;
  readonly hasLimit: boolean;
}

export interface DemoNamespace {
  readonly id: string;
  readonly name: string;
  readonly identifiers: readonly string[];
}

export interface DemoWorkspace {
  readonly workspaceId: string;
  readonly administratorId: string;
  readonly now: number;
  readonly random: Random;
  readonly keys: number;
}

/** What the traffic is about. */
export interface DemoContent {
  readonly apis: readonly { readonly id: string; readonly name: string; readonly paths: readonly string[] }[];
  readonly keys: readonly DemoKey[];
  readonly namespaces: readonly DemoNamespace[];
}

const apis = [
  { name: "payments", prefix: "pay_live", share: 50, paths: ["/charges", "/refunds", "/payouts", "/balance"] },
  { name: "search", prefix: "srch_live", share: 28, paths: ["/query", "/suggest", "/index"] },
  { name: "documents", prefix: "docs_live", share: 16, paths: ["/documents", "/render", "/share"] },
  { name: "sandbox", prefix: "test", share: 6, paths: ["/charges", "/query"] },
];

const permissions = [
  ["charges.create", "Create charges"],
  ["charges.refund", "Refund charges"],
  ["payouts.read", "Read payouts"],
  ["search.query", "Search"],
  ["search.index", "Change the index"],
  ["documents.read", "Read documents"],
  ["documents.write", "Write documents"],
  ["reports.export", "Export reports"],
] as const;

const roles = [
  { name: "reader", description: "Reads everything.", slugs: ["payouts.read", "search.query", "documents.read"] },
  { name: "integration", description: "What most integrations need.", slugs: ["charges.create", "search.query"] },
  { name: "editor", description: "Reads and writes documents.", slugs: ["documents.read", "documents.write"] },
  { name: "finance", description: "Refunds and reports.", slugs: ["charges.refund", "payouts.read", "reports.export"] },
];

const plans = [
  { name: "free", share: 55, limit: 60 },
  { name: "pro", share: 35, limit: 600 },
  { name: "enterprise", share: 10, limit: 6_000 },
];

const first =
  "Acme Globex Initech Umbrella Northwind Contoso Fabrikam Aperture Cyberdyne Hooli Vandelay Wonka Stark Wayne Tyrell Soylent Massive Blue Red Green Silver Harbor Summit Cedar Maple Granite Copper Falcon Heron Otter".split(
    " ",
  );
const second =
  "Robotics Logistics Health Media Foods Energy Software Travel Studios Bank Insurance Labs Retail Analytics Motors Airways Games Legal Education Security".split(
    " ",
  );
const uses = [
  "production",
  "staging",
  "CI deploy",
  "mobile app",
  "iOS app",
  "data export",
  "nightly import",
  "Zapier",
  "webhook relay",
  "partner portal",
  "load test",
  "on-call scripts",
];

/** Rows of one transaction. */
const ROWS_PER_TRANSACTION = 2_000;

/** One element, by the weight of its `share`. */
function weighted<T extends { share: number }>(random: Random, all: readonly T[]): T {
  let left = random.below(all.reduce((sum, { share }) => sum + share, 0));
  for (const one of all) {
    left -= one.share;
    if (left < 0) return one;
  }
  return all[0]!;
}

function pick<T>(random: Random, all: readonly T[]): T {
  return all[random.below(all.length)]!;
}

function chance(random: Random, percent: number): boolean {
  return random.below(1_000) < percent * 10;
}

/**
 * Makes the resources of the demo workspace, and passes their rows to `write` in pieces that are small transactions.
 * The same seed makes the same resources, except for hashes: they are random, so nobody has the strings of these keys.
 */
export async function writeContent(
  workspace: DemoWorkspace,
  write: (rows: DemoRows) => Promise<unknown>,
  onKeys: (written: number) => void,
): Promise<DemoContent> {
  const { workspaceId, now, random } = workspace;
  const common = { workspace_id: workspaceId };
  const began = now - 420 * DAY;
  const newHash = () => Buffer.from(systemSecrets(32)).toString("base64url");

  const apiRows = apis.map(({ name, prefix }, i) => ({
    id: newId(random, "api"),
    ...common,
    name,
    name_folded: name,
    prefix,
    byte_length: null,
    delete_protection: i === 0 ? 1 : 0,
    allowed_ips: null,
    policy: null,
    resources: null,
    own_key_access: 0,
    created_at: began + i * DAY,
    updated_at: null,
    deleted_at: null,
  }));
  await write({ table: "apis", rows: apiRows });
  const permissionIds = new Map(permissions.map(([slug]) => [slug as string, newId(random, "perm")]));
  await write({
    table: "permissions",
    rows: permissions.map(([slug, name], i) => ({
      id: permissionIds.get(slug)!,
      ...common,
      slug,
      slug_folded: slug,
      name,
      name_folded: fold(name),
      description: null,
      description_folded: null,
      created_at: began + i,
    })),
  });
  const roleRows = roles.map(({ name, description }, i) => ({
    id: newId(random, "role"),
    ...common,
    name,
    name_folded: name,
    description,
    description_folded: fold(description),
    created_at: began + i,
  }));
  await write({ table: "roles", rows: roleRows });
  await write({
    table: "roles_permissions",
    rows: roles.flatMap(({ slugs }, i) =>
      slugs.map((slug) => ({ ...common, role_id: roleRows[i]!.id, permission_id: permissionIds.get(slug)! })),
    ),
  });

  const owners = await writeOwners(workspace, Math.max(10, Math.round(workspace.keys / 5)), write);
  const keys: DemoKey[] = [];
  while (keys.length < workspace.keys) {
    const count = Math.min(ROWS_PER_TRANSACTION, workspace.keys - keys.length);
    const rows: Record<"keys" | "keys_roles" | "balances" | "ratelimits", DemoRows["rows"][number][]> = {
      keys: [],
      keys_roles: [],
      balances: [],
      ratelimits: [],
    };
    for (let i = 0; i < count; i++) {
      const api = weighted(random, apis);
      const apiId = apiRows[apis.indexOf(api)]!.id;
      const owner = chance(random, 94) ? pick(random, owners) : null;
      const plan = owner?.plan ?? plans[0]!;
      // In the order of creation, more of them lately.
      const age = (1 - Math.sqrt((keys.length + 1) / (workspace.keys + 1))) * 400 * DAY;
      const createdAt = Math.round(now - age - HOUR);
      const expiresAt = chance(random, 9) ? now - 20 * DAY + random.below(80 * 24) * HOUR : null;
      const key: DemoKey = {
        id: newId(random, "key"),
        apiId,
        identityId: owner?.id ?? null,
        createdAt,
        expiresAt,
        isEnabled: !chance(random, 4),
        hasCredits: chance(random, 20),
        hasLimit: chance(random, 60),
      };
      const name = owner ? `${owner.name}, ${pick(random, uses)}` : pick(random, uses);
      const poolId = newId(random, "pool");
      rows.keys.push({
        id: key.id,
        ...common,
        api_id: apiId,
        identity_id: key.identityId,
        pool_id: poolId,
        hash: newHash(),
        hash_version: 1,
        start: `${api.prefix}_${newId(random, "key").slice(4, 8)}`,
        name,
        name_folded: fold(name),
        meta: owner ? JSON.stringify({ plan: plan.name }) : null,
        enabled: key.isEnabled ? 1 : 0,
        recoverable: 0,
        expires_at: expiresAt,
        created_at: createdAt,
        updated_at: null,
        deleted_at: null,
        migration_id: null,
      });
      if (chance(random, 70)) {
        rows.keys_roles.push({ ...common, key_id: key.id, role_id: pick(random, roleRows).id });
      }
      if (key.hasCredits) rows.balances.push(balanceRow(workspace, poolId, plan.limit));
      if (key.hasLimit) {
        rows.ratelimits.push({
          id: newId(random, "rl"),
          ...common,
          key_id: key.id,
          identity_id: null,
          name: "requests",
          limit: plan.limit,
          duration: MINUTE,
          mode: "standard",
          auto_apply: 1,
          created_at: createdAt,
          updated_at: null,
        });
      }
      keys.push(key);
    }
    for (const table of ["keys", "keys_roles", "balances", "ratelimits"] as const) {
      await write({ table, rows: rows[table] });
    }
    onKeys(keys.length);
  }

  const namespaces = await writeNamespaces(workspace, write);
  const rootKeyIds = await writeRootKeys(workspace, newHash, write);
  await writeAudit(workspace, keys, rootKeyIds, write);
  return { apis: apis.map(({ name, paths }, i) => ({ id: apiRows[i]!.id, name, paths })), keys, namespaces };
}

/** Writes when each key was last used. */
export async function writeLastUsed(
  { workspaceId }: DemoWorkspace,
  lastUsed: ReadonlyMap<string, number>,
  write: (rows: DemoRows) => Promise<unknown>,
): Promise<void> {
  const all = [...lastUsed].map(([key_id, last_used_at]) => ({ key_id, workspace_id: workspaceId, last_used_at }));
  for (let i = 0; i < all.length; i += ROWS_PER_TRANSACTION) {
    await write({ table: "key_usage", rows: all.slice(i, i + ROWS_PER_TRANSACTION) });
  }
}

function balanceRow({ workspaceId, now, random }: DemoWorkspace, poolId: string, perMinute: number) {
  const isRefilled = chance(random, 80);
  const amount = perMinute * 100;
  const share = random.below(100);
  const remaining =
    share < 3 ? random.below(Math.ceil(amount / 10)) : Math.round((amount * (10 + random.below(90))) / 100);
  const refill = isRefilled ? ({ interval: "monthly", amount } as const) : null;
  return {
    pool_id: poolId,
    workspace_id: workspaceId,
    remaining: !isRefilled && share < 2 ? 0 : remaining,
    ...refillColumns(refill, instantAt(now)),
  };
}

interface Owner {
  readonly id: string;
  readonly name: string;
  readonly plan: (typeof plans)[number];
}

async function writeOwners(
  { workspaceId, now, random }: DemoWorkspace,
  count: number,
  write: (rows: DemoRows) => Promise<unknown>,
): Promise<Owner[]> {
  const owners: Owner[] = [];
  let rows: DemoRows["rows"][number][] = [];
  for (let i = 0; i < count; i++) {
    const name = `${pick(random, first)} ${pick(random, second)}`;
    const plan = weighted(random, plans);
    const id = newId(random, "id");
    owners.push({ id, name, plan });
    rows.push({
      id,
      workspace_id: workspaceId,
      external_id: `${fold(name).replace(" ", "-")}-${1_000 + i}`,
      meta: JSON.stringify({ plan: plan.name, country: pick(random, ["US", "DE", "JP", "BR", "IN", "FR", "GB"]) }),
      created_at: Math.round(now - (1 - i / count) * 410 * DAY),
      updated_at: null,
      deleted_at: null,
    });
    if (rows.length === ROWS_PER_TRANSACTION || i === count - 1) {
      await write({ table: "identities", rows });
      rows = [];
    }
  }
  return owners;
}

async function writeNamespaces(
  { workspaceId, now, random }: DemoWorkspace,
  write: (rows: DemoRows) => Promise<unknown>,
): Promise<DemoNamespace[]> {
  const address = () => `203.0.113.${1 + random.below(254)}`;
  const namespaces = [
    { name: "login", identifiers: Array.from({ length: 12 }, address) },
    { name: "emails", identifiers: Array.from({ length: 12 }, () => `customer_${1_000 + random.below(9_000)}`) },
    { name: "exports", identifiers: Array.from({ length: 8 }, () => `team_${100 + random.below(900)}`) },
  ].map((namespace) => ({ ...namespace, id: newId(random, "rlns"), identifiers: [...new Set(namespace.identifiers)] }));
  const created_at = now - 300 * DAY;
  await write({
    table: "ratelimit_namespaces",
    rows: namespaces.map(({ id, name }, i) => ({
      id,
      workspace_id: workspaceId,
      name,
      name_folded: name,
      created_at: created_at + i,
      deleted_at: null,
    })),
  });
  const overrides = [
    ["login", "198.51.100.*", 1_000, MINUTE],
    ["emails", "customer_9*", 500, HOUR],
    ["emails", namespaces[1]!.identifiers[0]!, 0, HOUR],
    ["exports", "team_enterprise_*", 50, DAY],
  ] as const;
  await write({
    table: "ratelimit_overrides",
    rows: overrides.map(([name, identifier, limit, duration], i) => ({
      id: newId(random, "rlor"),
      workspace_id: workspaceId,
      identifier,
      limit,
      duration,
      mode: null,
      shadow: null,
      namespace_id: namespaces.find((one) => one.name === name)!.id,
      created_at: created_at + i,
      updated_at: null,
    })),
  });
  return namespaces;
}

async function writeRootKeys(
  { workspaceId, now, random }: DemoWorkspace,
  newHash: () => string,
  write: (rows: DemoRows) => Promise<unknown>,
): Promise<string[]> {
  const rootKeys = [
    { name: "sign-up service", grants: ["apis.*.create_key", "apis.*.read_api"], created: 390, used: 0 },
    { name: "gateway", grants: ["apis.*.verify_key"], created: 380, used: 0 },
    { name: "billing sync", grants: ["apis.*.update_key", "apis.*.read_key"], created: 300, used: 118 },
    { name: "old admin scripts", grants: ["*"], created: 350, used: 204 },
    { name: "support desk", grants: ["apis.*.read_key", "identities.*.read_identity"], created: 120, used: 1 },
  ].map((rootKey) => ({ ...rootKey, id: newId(random, "rk") }));
  await write({
    table: "root_keys",
    rows: rootKeys.map(({ id, name, grants, created }) => ({
      id,
      workspace_id: workspaceId,
      name,
      name_folded: fold(name),
      hash: newHash(),
      hash_version: 1,
      start: `lk_root_${id.slice(3, 7)}`,
      grants: JSON.stringify(grants),
      source: "issued",
      enabled: 1,
      expires_at: null,
      created_at: now - created * DAY,
      updated_at: null,
      deleted_at: null,
    })),
  });
  await write({
    table: "root_key_usage",
    rows: rootKeys.map(({ id, used }) => ({ root_key_id: id, last_used_at: now - used * DAY - HOUR })),
  });
  return rootKeys.map(({ id }) => id);
}

/** The creation of the keys of the last 30 days, and some changes. */
async function writeAudit(
  { workspaceId, administratorId, now, random }: DemoWorkspace,
  keys: readonly DemoKey[],
  [signUp = administratorId, , , , support = administratorId]: readonly string[],
  write: (rows: DemoRows) => Promise<unknown>,
): Promise<void> {
  const entries: { at: number; actor: string; action: string; target: string; meta: object }[] = [];
  const add = (at: number, actor: string, action: string, target: string, meta: object) =>
    entries.push({ at, actor, action, target, meta });
  for (const key of keys) {
    if (key.createdAt > now - 30 * DAY && entries.length < 4_000) {
      add(key.createdAt, signUp, "keys.createKey", key.id, { apiId: key.apiId });
    }
  }
  for (let i = 0; i < Math.min(600, keys.length); i++) {
    const key = pick(random, keys);
    const at = now - random.below(30 * 24 * 60) * MINUTE - MINUTE;
    if (!key.isEnabled) add(at, administratorId, "keys.updateKey", key.id, { enabled: false });
    else if (key.expiresAt !== null) add(at, support, "keys.updateKey", key.id, { expires: key.expiresAt });
    else if (key.hasCredits) add(at, support, "keys.updateCredits", key.id, { operation: "increment", value: 1_000 });
    else add(at, administratorId, "keys.updateKey", key.id, { name: "renamed" });
  }
  for (let i = 0; i < entries.length; i += ROWS_PER_TRANSACTION / 2) {
    const some = entries
      .slice(i, i + ROWS_PER_TRANSACTION / 2)
      .map((entry) => ({ ...entry, id: newId(random, "evt") }));
    await write({
      table: "audit_events",
      rows: some.map(({ id, at, actor, action, target, meta }) => ({
        id,
        workspace_id: workspaceId,
        occurred_at: at,
        actor,
        action,
        targets: JSON.stringify([target]),
        meta: JSON.stringify(meta),
      })),
    });
    await write({
      table: "audit_targets",
      rows: some.map(({ id, at, target }) => ({ workspace_id: workspaceId, target, occurred_at: at, event_id: id })),
    });
  }
}
