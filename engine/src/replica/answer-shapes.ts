import type { ChargeCall, ChargeQuestion, DescriptorCall, LeaseQuestion, LimitCall, RecordsQuestion } from "./home.ts";
import type { CountReport } from "./report.ts";

/**
 * What the answers of home must have, by operation: whatever stands in its place can answer 200 too. Each function says what is
 * wrong with an answer; undefined: nothing. Further members are those of a later release.
 */

/** What is wrong with a value: where, and what. */
type Fault = string | undefined;
type Check = (value: unknown) => Fault;

const text: Check = (value) => (typeof value === "string" ? undefined : " is no text");
const name: Check = (value) => (typeof value === "string" && value !== "" ? undefined : " is no name");
const flag: Check = (value) => (typeof value === "boolean" ? undefined : " is neither true nor false");
const count: Check = (value) => (isInteger(value) && value >= 0 ? undefined : " is no count");
const integer: Check = (value) => (isInteger(value) ? undefined : " is no integer");
const object: Check = (value) => (isObject(value) ? undefined : " is no object");

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function oneOf(...values: readonly unknown[]): Check {
  return (value) => (values.includes(value) ? undefined : ` is none of ${values.join(", ")}`);
}

function orNull(check: Check): Check {
  return (value) => (value === null ? undefined : check(value));
}

function optional(check: Check): Check {
  return (value) => (value === undefined ? undefined : check(value));
}

/** A list, with as many entries as were asked for if there is a number. */
function listOf(check: (value: unknown, i: number) => Fault, length?: number): Check {
  return (value) => {
    if (!Array.isArray(value)) return " is no list";
    if (length !== undefined && value.length !== length) return ` has ${value.length} entries instead of ${length}`;
    for (let i = 0; i < value.length; i++) {
      const fault = check(value[i], i);
      if (fault !== undefined) return `[${i}]${fault}`;
    }
    return undefined;
  };
}

/** An object with these members. */
function membersOf(checks: Readonly<Record<string, Check>>): Check {
  const entries = Object.entries(checks);
  return (value) => {
    if (!isObject(value)) return " is no object";
    for (const [member, check] of entries) {
      const fault = check(Object.hasOwn(value, member) ? value[member] : undefined);
      if (fault !== undefined) return `.${member}${fault}`;
    }
    return undefined;
  };
}

/** A text with a JSON value in it. */
function jsonOf(check: Check): Check {
  return (value) => {
    if (typeof value !== "string") return " is no text";
    try {
      const fault = check(JSON.parse(value));
      return fault && `, as JSON,${fault}`;
    } catch {
      return " is no JSON";
    }
  };
}

const texts = listOf(text);

export const faultOfChanges: Check = membersOf({
  position: name,
  age: integer,
  isLost: flag,
  tags: texts,
  hasMore: flag,
  workspaceId: name,
  allowsAnonymous: flag,
});

const storedFlag = oneOf(0, 1);
const limits = listOf(
  membersOf({
    id: name,
    name: text,
    limit: count,
    duration: count,
    // A later release can have others, which `needs` then says.
    mode: name,
    auto_apply: storedFlag,
    shadow: optional(storedFlag),
  }),
);
const meta = orNull(jsonOf(object));
const addresses = orNull(jsonOf(texts));
const key = membersOf({
  keyId: name,
  apiId: name,
  poolId: name,
  name: orNull(text),
  meta,
  enabled: flag,
  workspaceEnabled: flag,
  expiresAt: orNull(integer),
  allowedIps: addresses,
  apiAllowedIps: addresses,
  identity: orNull(membersOf({ id: name, externalId: text, meta, ratelimits: limits })),
  ratelimits: limits,
  roles: texts,
  permissions: texts,
  needs: texts,
});
const deletedKey = membersOf({ isDeleted: oneOf(true), keyId: name, apiId: name, identityId: orNull(name) });
const rootKey = membersOf({
  rootKeyId: name,
  grants: texts,
  enabled: flag,
  expiresAt: orNull(integer),
  workspaceEnabled: flag,
  requestsPerMinute: orNull(count),
});
const namespace = membersOf({ namespaceId: name });
const workspace = membersOf({
  id: name,
  enabled: flag,
  hasImportedKeys: flag,
  hasSha512Keys: flag,
  hasUpstreams: flag,
});
const elsewhere = membersOf({ isElsewhere: oneOf(true) });

function orElsewhere(check: Check): Check {
  return (value) => (isObject(value) && "isElsewhere" in value ? elsewhere(value) : check(value));
}

const foundKey = orNull(
  orElsewhere((value) => (isObject(value) && "isDeleted" in value ? deletedKey(value) : key(value))),
);
const foundRootKey = orNull(orElsewhere(rootKey));
const foundNamespace = orNull(orElsewhere(namespace));

export function faultOfRecords(answer: unknown, question: RecordsQuestion): Fault {
  const { keys = [], rootKeys = [], namespaces = [] } = question;
  const found = listOf(foundNamespace, namespaces.length);
  return membersOf({
    keys: listOf(foundKey, keys.length),
    rootKeys: listOf(foundRootKey, rootKeys.length),
    namespaces: namespaces.length > 0 ? found : optional(found),
    ...(question.workspace && { workspace }),
  })(answer);
}

/** Members of a limit in an answer to a caller. */
const countedLimit = { limit: count, remaining: integer, reset: integer, retryAfter: optional(count) };
const verified = membersOf({
  valid: flag,
  code: name,
  keyId: optional(name),
  apiId: optional(name),
  enabled: optional(flag),
  name: optional(text),
  meta: optional(object),
  expires: optional(integer),
  permissions: optional(texts),
  roles: optional(texts),
  plan: optional(text),
  credits: optional(integer),
  budgets: optional(listOf(object)),
  hold: optional(object),
  identity: optional(membersOf({ externalId: text })),
  derived: optional(membersOf({ parentKeyId: name, meta: object })),
  concurrency: optional(listOf(object)),
  ratelimits: optional(listOf(membersOf({ name: text, exceeded: flag, ...countedLimit }))),
  retryAfter: optional(count),
});
const limited = membersOf({ success: flag, ...countedLimit });
const limitedEntry = membersOf({ namespace: text, identifier: text, passed: flag, ...countedLimit });
const BASE64 = /^[\w+/]+={0,2}$/;
const described = membersOf({
  message: (value) => (typeof value === "string" && BASE64.test(value) ? undefined : " is no base64"),
});

/** What is wrong with the `data` of an answer to a call that home decides. */
export function faultOfDecision(data: unknown, operation: string, entries?: number): Fault {
  switch (operation) {
    case "ratelimits.limit":
      return limited(data);
    case "ratelimits.multiLimit":
      return membersOf({ passed: flag, limits: listOf(limitedEntry, entries) })(data);
    case "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit":
      return described(data);
    default:
      return verified(data) ?? faultOfCode(data as { valid: boolean; code: string });
  }
}

function faultOfCode({ valid, code }: { valid: boolean; code: string }): Fault {
  return valid === (code === "VALID") ? undefined : ".valid contradicts its code";
}

/** What a header of an answer may be. */
const HEADER = /^[\w-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

function headers(value: unknown): Fault {
  if (!isObject(value)) return " is no object";
  for (const [header, content] of Object.entries(value)) {
    const isHeader = HEADER.test(header) && typeof content === "string" && HEADER_VALUE.test(content);
    if (!isHeader) return `.${JSON.stringify(header)} is no header`;
  }
  return undefined;
}

const problem = membersOf({
  code: name,
  type: name,
  status: (value) => (isInteger(value) && value >= 400 && value <= 599 ? undefined : " is no status of a problem"),
  detail: text,
  headers: optional(headers),
});

function faultOfResult(result: unknown, call: ChargeCall | LimitCall | DescriptorCall): Fault {
  if (!isObject(result)) return " is no object";
  const { problem: rejection, data, headers: further } = result;
  if (rejection !== undefined) return at(".problem", problem(rejection));
  if (!("operation" in call)) return at(".data", faultOfDecision(data, "keys.verifyKey"));
  if ("isElsewhere" in result) return elsewhere(result);
  const entries = "entries" in call ? call.entries.length : undefined;
  return at(".data", faultOfDecision(data, call.operation, entries)) ?? at(".headers", optional(headers)(further));
}

function at(path: string, fault: Fault): Fault {
  return fault && path + fault;
}

export function faultOfCharge(answer: unknown, { calls = [], limits = [] }: ChargeQuestion): Fault {
  const results = (asked: readonly (ChargeCall | LimitCall | DescriptorCall)[]) =>
    listOf((result, i) => {
      const call = asked[i];
      return call && faultOfResult(result, call);
    }, asked.length);
  return membersOf({
    results: results(calls),
    limits: limits.length > 0 ? results(limits) : optional(results([])),
  })(answer);
}

const grant = membersOf({ id: name, amount: count, remaining: count, reset: integer, expiresIn: integer });

export function faultOfLeases(answer: unknown, { leases }: LeaseQuestion): Fault {
  return membersOf({ leases: listOf(orNull(grant), leases.length) })(answer);
}

export function faultOfReport(answer: unknown, { sequence }: CountReport): Fault {
  return membersOf({ sequence: oneOf(sequence), leftOut: optional(count) })(answer);
}
