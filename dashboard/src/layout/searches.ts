import { type RangeName, rangeNames } from "../ui/fields/range.tsx";
import { oneOf, optional, text } from "./search.ts";

/** The range of the charts of the overview, and of a namespace. */
export interface OverviewSearch {
  range?: RangeName;
}
export const overviewSearch = ({ range }: Record<string, unknown>): OverviewSearch =>
  optional({ range: oneOf(range, rangeNames) });

/** The search of the APIs, and whether a leaked key is reported. */
export interface ApisSearch {
  q?: string | undefined;
  report?: boolean | undefined;
}
export const apisSearch = ({ q, report }: Record<string, unknown>): ApisSearch =>
  optional({ q: text(q), report: report === true || undefined });

/** Orders of keys by a column; with `-` descending. `asc`: the oldest first. Absent: the newest first. */
export const keysOrders = ["asc", "name", "-name", "expires", "-expires", "used", "-used"] as const;
export type KeysOrder = (typeof keysOrders)[number];

/** Search and filters of the keys of an API, and the key whose panel is open. */
export interface KeysSearch {
  q?: string | undefined;
  state?: "active" | "disabled" | "expired" | "deleted" | undefined;
  expires?: "1d" | "14d" | "90d" | undefined;
  prefix?: string | undefined;
  role?: string | undefined;
  owner?: string | undefined;
  /** The id of a budget. */
  budget?: string | undefined;
  /** The name of a plan. */
  plan?: string | undefined;
  order?: KeysOrder | undefined;
  key?: string | undefined;
  /** Whether a key is created. */
  create?: boolean | undefined;
}
export const keysSearch = (search: Record<string, unknown>): KeysSearch =>
  optional({
    q: text(search.q),
    state: oneOf(search.state, ["active", "disabled", "expired", "deleted"]),
    expires: oneOf(search.expires, ["1d", "14d", "90d"]),
    prefix: text(search.prefix),
    role: text(search.role),
    owner: text(search.owner),
    budget: text(search.budget),
    plan: text(search.plan),
    order: oneOf(search.order, keysOrders),
    key: text(search.key),
    create: search.create === true || undefined,
  });

/** What the leak kit of an API is for. */
export interface ApiSettingsSearch {
  /** Separated by spaces. */
  prefixes?: string | undefined;
  format?: LeakFormat | undefined;
}
export const leakFormats = ["regex", "gitleaks", "trufflehog", "github"] as const;
export type LeakFormat = (typeof leakFormats)[number];
export const apiSettingsSearch = ({ prefixes, format }: Record<string, unknown>): ApiSettingsSearch =>
  optional({ prefixes: text(prefixes), format: oneOf(format, leakFormats) });

/** The search of a list, and the row whose panel is open. */
export interface ListSearch {
  q?: string | undefined;
  open?: string | undefined;
}
export const listSearch = ({ q, open }: Record<string, unknown>): ListSearch =>
  optional({ q: text(q), open: text(open) });

/** The search of the permissions, and the query that is tried. */
export interface RolesSearch {
  q?: string;
  query?: string;
}
export const rolesSearch = ({ q, query }: Record<string, unknown>): RolesSearch =>
  optional({ q: text(q), query: text(query) });

/** The filters of the audit log, and the event whose panel is open. */
export interface AuditSearch {
  range?: RangeName | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
  open?: string | undefined;
}
export const auditSearch = (search: Record<string, unknown>): AuditSearch =>
  optional({
    range: oneOf(search.range, rangeNames),
    actor: text(search.actor),
    action: text(search.action),
    target: text(search.target),
    open: text(search.open),
  });

/** The filters of the events, and the event whose panel is open. */
export interface EventsSearch {
  range?: RangeName | undefined;
  /** A type, or what types begin with: `key.created`, `key.`. */
  type?: string | undefined;
  object?: string | undefined;
  open?: string | undefined;
}
export const eventsSearch = (search: Record<string, unknown>): EventsSearch =>
  optional({
    range: oneOf(search.range, rangeNames),
    type: text(search.type),
    object: text(search.object),
    open: text(search.open),
  });

/** The filters of the log of decisions, and the decision whose panel is open. */
export interface DecisionsSearch {
  range?: RangeName | undefined;
  outcome?: "refused" | "passed" | undefined;
  code?: DecisionCode | undefined;
  /** The id of a request, a key, an identity, an API or a namespace. */
  about?: string | undefined;
  open?: string | undefined;
}
export const decisionCodes = [
  "VALID",
  "NOT_FOUND",
  "FORBIDDEN",
  "INSUFFICIENT_PERMISSIONS",
  "USAGE_EXCEEDED",
  "RATE_LIMITED",
  "DISABLED",
  "EXPIRED",
  "PASSED",
  "DENIED",
] as const;
export type DecisionCode = (typeof decisionCodes)[number];
export const decisionsSearch = (search: Record<string, unknown>): DecisionsSearch =>
  optional({
    range: oneOf(search.range, rangeNames),
    outcome: oneOf(search.outcome, ["refused", "passed"]),
    code: oneOf(search.code, decisionCodes),
    about: text(search.about),
    open: text(search.open),
  });

/** The state of the deliveries that are listed, and the event whose delivery is open. */
export interface WebhookSearch {
  status?: DeliveryStatus | undefined;
  open?: string | undefined;
}
export const deliveryStatuses = ["pending", "delivered", "dead"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];
export const webhookSearch = ({ status, open }: Record<string, unknown>): WebhookSearch =>
  optional({ status: oneOf(status, deliveryStatuses), open: text(open) });

/** The state of the charts of the analytics. */
export interface AnalyticsSearch {
  range?: RangeName;
  /** A range of its own, Unix time in milliseconds; it replaces `range`. */
  start?: number;
  end?: number;
  granularity?: "minute" | "hour" | "day";
  /** Whether the period before is drawn too. */
  compare?: boolean;
  by?: AnalyticsGroup;
  api?: string;
  key?: string;
  owner?: string;
  /** Tags, separated by spaces. */
  tags?: string;
}
export const analyticsGroups = ["code", "api", "key", "owner", "tag"] as const;
export type AnalyticsGroup = (typeof analyticsGroups)[number];
export const analyticsSearch = (search: Record<string, unknown>): AnalyticsSearch =>
  optional({
    range: oneOf(search.range, rangeNames),
    start: time(search.start),
    end: time(search.end),
    granularity: oneOf(search.granularity, ["minute", "hour", "day"]),
    compare: search.compare === true || undefined,
    by: oneOf(search.by, analyticsGroups),
    api: text(search.api),
    key: text(search.key),
    owner: text(search.owner),
    tags: text(search.tags),
  });

function time(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}
