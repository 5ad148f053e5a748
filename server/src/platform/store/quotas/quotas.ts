/** A kind of rows that a workspace may have only so many of. */
interface QuotaDeclaration {
  /** In a sentence: "the maximum number of …". */
  readonly things: string;
  /** The setting is `LATCHKEY_<name>_PER_WORKSPACE`. */
  readonly setting: string;
  readonly max: { readonly default: number; readonly highest: number };
  readonly table: string;
  /** Whether deleted rows stay for a while. They do not count. */
  readonly hasDeletedRows: boolean;
  /** The columns after `workspace_id` of the index by which rows are counted. */
  readonly order: "id" | "created_at, id";
}

/** Every quota on the rows of a workspace. */
export const quotas = {
  apis: {
    things: "APIs",
    setting: "APIS",
    max: { default: 10_000, highest: 10_000_000 },
    table: "apis",
    hasDeletedRows: true,
    order: "created_at, id",
  },
  budgets: {
    things: "budgets",
    setting: "BUDGETS",
    max: { default: 100_000, highest: 10_000_000 },
    table: "budgets",
    hasDeletedRows: false,
    order: "created_at, id",
  },
  derivedKeys: {
    things: "derived keys",
    setting: "DERIVED_KEYS",
    max: { default: 1_000_000, highest: 100_000_000 },
    table: "derived_keys",
    hasDeletedRows: false,
    order: "id",
  },
  identities: {
    things: "identities",
    setting: "IDENTITIES",
    max: { default: 10_000_000, highest: 1_000_000_000 },
    table: "identities",
    hasDeletedRows: true,
    order: "created_at, id",
  },
  keys: {
    things: "keys",
    setting: "KEYS",
    max: { default: 10_000_000, highest: 1_000_000_000 },
    table: "keys",
    hasDeletedRows: true,
    order: "id",
  },
  namespaces: {
    things: "rate limit namespaces",
    setting: "NAMESPACES",
    max: { default: 100_000, highest: 10_000_000 },
    table: "ratelimit_namespaces",
    hasDeletedRows: true,
    order: "created_at, id",
  },
  overrides: {
    things: "rate limit overrides",
    setting: "OVERRIDES",
    max: { default: 1_000_000, highest: 100_000_000 },
    table: "ratelimit_overrides",
    hasDeletedRows: false,
    order: "id",
  },
  permissions: {
    things: "permissions",
    setting: "PERMISSIONS",
    max: { default: 100_000, highest: 10_000_000 },
    table: "permissions",
    hasDeletedRows: false,
    order: "created_at, id",
  },
  plans: {
    things: "plans",
    setting: "PLANS",
    max: { default: 1_000, highest: 1_000_000 },
    table: "plans",
    hasDeletedRows: false,
    order: "created_at, id",
  },
  portalSessions: {
    things: "sessions of the portal",
    setting: "PORTAL_SESSIONS",
    max: { default: 100_000, highest: 10_000_000 },
    table: "portal_sessions",
    hasDeletedRows: false,
    order: "created_at, id",
  },
  roles: {
    things: "roles",
    setting: "ROLES",
    max: { default: 100_000, highest: 10_000_000 },
    table: "roles",
    hasDeletedRows: false,
    order: "created_at, id",
  },
  rootKeys: {
    things: "root keys",
    setting: "ROOT_KEYS",
    max: { default: 10_000, highest: 10_000_000 },
    table: "root_keys",
    hasDeletedRows: true,
    order: "created_at, id",
  },
} as const satisfies Record<string, QuotaDeclaration>;

export type Quota = keyof typeof quotas;

/** Sorted: transactions that take several lock their rows in this order. */
export const quotaNames = (Object.keys(quotas) as Quota[]).sort();

/** The largest numbers of rows of a workspace. */
export type QuotaMaxima = Readonly<Record<Quota, number>>;

export const defaultMaxima = Object.fromEntries(
  quotaNames.map((quota) => [quota, quotas[quota].max.default]),
) as QuotaMaxima;

/** The quotas on rows, and the one on stored bytes. */
export type Allowance = Quota | "bytes";

/** The default of the largest number of bytes. */
export const BYTES_MAX = 32 * 1024 ** 3;

export function settingOf(allowance: Allowance): string {
  return `LATCHKEY_${allowance === "bytes" ? "BYTES" : quotas[allowance].setting}_PER_WORKSPACE`;
}
