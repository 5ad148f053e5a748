import { hasDay } from "../../../engine/src/rules/refill.ts";
import { CommandError } from "../output.ts";
import { pause } from "../pause.ts";
import { treeChanges, treeOf } from "./descriptors.ts";
import type {
  Document,
  DocumentApi,
  DocumentBudget,
  DocumentNamespace,
  DocumentRootKey,
  DocumentUpstream,
  WholeDocument,
} from "./document.ts";
import { type Ids, labels, withIds } from "./names.ts";
import { comparablePlan, planMembers } from "./plans.ts";
import type { ServiceState } from "./service-state.ts";

type Json = Record<string, unknown>;

/** Calls an operation and returns its `data`. */
export type CallOperation = (operation: string, body: Json) => Promise<Json>;

/** A root key that was created. Its string is shown once. */
export interface CreatedRootKey {
  name: string;
  rootKeyId: string;
  key: string;
}

/** One step from what a service has to what it should have. */
export interface Change {
  readonly action: "create" | "update" | "delete";
  /** What is changed, such as `role`. */
  readonly kind: string;
  readonly name: string;
  /** The members with their new values, and with the former ones in an update. */
  readonly details: readonly string[];
  /** The body of `plans.previewUpdate` that says what the change does to how many keys; only of plans. */
  readonly preview?: Json;
  run(call: CallOperation, onIssued: (issued: CreatedRootKey) => void): Promise<void>;
}

export interface Plan {
  /** Changes in the order in which they can run. */
  readonly changes: readonly Change[];
  /** What only the service has, as deletions in the order in which they can run. */
  readonly extras: readonly Change[];
}

/** Resources of one list are distinguished by their time of creation in milliseconds. */
const CREATION_GAP = 2;

/** The value of a header of the verifier of an API. Throws if there is none. */
export type HeaderValues = (header: DocumentUpstream["headers"][number], api: string) => string;

/** The changes that make a service have what a document says. `rootKey` is the caller's, which is never deleted. */
export function planChanges(
  desired: Document,
  { document: actual, ids: known, starts }: ServiceState,
  headerValue: HeaderValues,
  rootKey?: string,
): Plan {
  // Resources that the plan creates are added when they exist.
  const ids: Ids = {
    apis: new Map(known.apis),
    ratelimits: new Map(known.ratelimits),
    budgets: new Map(known.budgets),
    plans: new Map(known.plans),
    rootKeys: new Map(known.rootKeys),
  };
  const isOwn = (label: string) => starts.get(label) !== "" && rootKey?.startsWith(starts.get(label)!) === true;
  // A section can name what the sections before it have, so deletions run in the opposite order.
  const plans = [
    planPermissions(desired, actual),
    planRoles(desired, actual),
    planNamespaces(desired, actual, ids),
    planApis(desired, actual, ids, headerValue),
    planBudgets(desired, actual, ids),
    planPlans(desired, actual, ids),
    planRootKeys(desired, actual, ids, isOwn),
  ];
  return {
    changes: plans.flatMap(({ changes }) => changes),
    extras: plans.flatMap(({ extras }) => extras).reverse(),
  };
}

function planPermissions(desired: Document, actual: WholeDocument): Plan {
  const changes: Change[] = [];
  const extras: Change[] = [];
  const permissions = compare(desired.permissions, actual.permissions, ({ slug }) => slug.toLowerCase());
  for (const { slug, ...rest } of permissions.created) {
    const body = { slug, name: rest.name ?? slug, ...given({ description: rest.description }) };
    changes.push(create("permission", slug, given(rest), (call) => call("permissions.createPermission", body)));
  }
  for (const [wanted, found] of permissions.common) {
    const next = { slug: wanted.slug, name: wanted.name ?? wanted.slug, description: wanted.description || null };
    const details = differences(next, found);
    if (details.length > 0) {
      changes.push(
        update("permission", wanted.slug, details, (call) =>
          call("permissions.updatePermission", { permission: found.slug, ...next }),
        ),
      );
    }
  }
  // A permission that a role of the document has is part of the document.
  const referenced = new Set(
    desired.roles?.flatMap((role) => role.permissions ?? []).map((slug) => slug.toLowerCase()),
  );
  for (const { slug } of permissions.extra.filter(({ slug }) => !referenced.has(slug.toLowerCase()))) {
    extras.push(remove("permission", slug, (call) => call("permissions.deletePermission", { permission: slug })));
  }
  return { changes, extras };
}

function planRoles(desired: Document, actual: WholeDocument): Plan {
  const changes: Change[] = [];
  const extras: Change[] = [];
  const roles = compare(desired.roles, actual.roles, ({ name }) => name.toLowerCase());
  for (const role of roles.created) {
    changes.push(
      create("role", role.name, given({ ...role, name: undefined }), (call) =>
        call("permissions.createRole", given(role)),
      ),
    );
  }
  for (const [wanted, found] of roles.common) {
    const next = { name: wanted.name, description: wanted.description || null };
    const own = differences(next, found);
    const slugs = setDifference(wanted.permissions ?? [], found.permissions ?? [], (slug) => slug.toLowerCase());
    if (own.length + slugs.length === 0) continue;
    changes.push(
      update(
        "role",
        wanted.name,
        [...own, ...(slugs.length > 0 ? [`permissions: ${slugs.join(" ")}`] : [])],
        async (call) => {
          if (own.length > 0) await call("permissions.updateRole", { role: found.name, ...next });
          if (slugs.length > 0)
            await call("permissions.setRolePermissions", { role: wanted.name, permissions: wanted.permissions ?? [] });
        },
      ),
    );
  }
  for (const { name } of roles.extra) {
    extras.push(remove("role", name, (call) => call("permissions.deleteRole", { role: name })));
  }
  return { changes, extras };
}

function planNamespaces(desired: Document, actual: WholeDocument, ids: Ids): Plan {
  const changes: Change[] = [];
  const extras: Change[] = [];
  const namespaces = compare(desired.namespaces, actual.namespaces, ({ name }) => name);
  for (const { name } of namespaces.created) {
    changes.push(
      create("namespace", name, {}, async (call) => {
        // The first use of a name creates its namespace. This one charges nothing.
        await call("ratelimits.limit", {
          namespace: name,
          identifier: "latchkey apply",
          limit: 1,
          duration: 1_000,
          cost: 0,
        });
        for (const row of await listNamespace(call, name)) ids.ratelimits.set(name, String(row.id));
      }),
    );
  }
  const emptyNamespaces: DocumentNamespace[] = namespaces.created.map(({ name }) => ({ name, overrides: [] }));
  for (const [wanted, found] of [
    ...namespaces.common,
    ...namespaces.created.map((one, i) => [one, emptyNamespaces[i]!] as const),
  ]) {
    const overrides = compare(wanted.overrides ?? [], found.overrides ?? [], ({ identifier }) => identifier);
    const namespace = wanted.name;
    const set = (override: Json) => async (call: CallOperation) => {
      await pause(CREATION_GAP);
      await call("ratelimits.setOverride", { namespace, ...override });
    };
    for (const { identifier, ...rest } of overrides.created) {
      changes.push(create("override", `${namespace} ${identifier}`, rest, set({ identifier, ...rest })));
    }
    for (const [override, former] of overrides.common) {
      const details = differences({ ...override, mode: override.mode, shadow: override.shadow }, former);
      if (details.length > 0)
        changes.push(update("override", `${namespace} ${override.identifier}`, details, set(override)));
    }
    const [tree, formerTree] = [treeOf(wanted), treeOf(found)];
    const setTree = async (call: CallOperation) =>
      void (await call("ratelimits.setDescriptors", { namespace, ...tree }));
    const details = treeChanges(tree, formerTree);
    if (tree.descriptors.length > 0 && details.length > 0) {
      const action = formerTree.descriptors.length > 0 ? "update" : "create";
      changes.push({ action, kind: "descriptors", name: namespace, details, run: setTree });
    } else if (tree.descriptors.length === 0 && formerTree.descriptors.length > 0) {
      extras.push(remove("descriptors", namespace, setTree));
    }
    for (const { identifier } of overrides.extra) {
      extras.push(
        remove("override", `${namespace} ${identifier}`, (call) =>
          call("ratelimits.deleteOverride", { namespace, identifier }),
        ),
      );
    }
  }
  for (const { name } of namespaces.extra) {
    extras.push(remove("namespace", name, (call) => call("ratelimits.deleteNamespace", { namespace: name })));
  }
  return { changes, extras };
}

function planApis(desired: Document, actual: WholeDocument, ids: Ids, headerValue: HeaderValues): Plan {
  const changes: Change[] = [];
  const extras: Change[] = [];
  const apis = compareLabelled(desired.apis, actual.apis);
  const apiMembers = ({
    prefix = null,
    byteLength = null,
    deleteProtection = false,
    allowedIps = null,
    leakAction = "mark",
    expiryNotices = null,
    upstream = null,
    ownKeyAccess = false,
    ownKeyDerivation = false,
    resources = null,
    policy = null,
    portal = null,
  }: DocumentApi) => ({
    prefix,
    byteLength,
    deleteProtection,
    allowedIps,
    leakAction,
    expiryNotices,
    upstream: upstream && comparable(upstream),
    ownKeyAccess,
    ownKeyDerivation,
    resources,
    policy,
    portal,
  });
  /** The members as the operation takes them, with the values of the headers. */
  const sent = (label: string, { upstream }: DocumentApi, members: Json): Json =>
    upstream && "upstream" in members
      ? {
          ...members,
          upstream: {
            ...upstream,
            headers: upstream.headers.map((header) => ({ name: header.name, value: headerValue(header, label) })),
          },
        }
      : members;
  for (const [label, api] of apis.created) {
    const rest = given({ ...api, name: undefined, upstream: api.upstream && comparable(api.upstream) });
    const members = sent(label, api, rest);
    changes.push(
      create("api", label, rest, async (call) => {
        await pause(CREATION_GAP);
        const { apiId } = await call("apis.createApi", { name: api.name });
        ids.apis.set(label, String(apiId));
        if (Object.keys(members).length > 0) await call("apis.updateApi", { apiId, ...members });
      }),
    );
  }
  for (const [label, wanted, found] of apis.common) {
    const [next, former] = [apiMembers(wanted), apiMembers(found)];
    const details = differences(next, former);
    if (details.length === 0) continue;
    // A verifier that stays is not sent, so the values of its headers are not needed.
    const members = sent(label, wanted, changedMembers(next, former));
    changes.push(
      update("api", label, details, (call) => call("apis.updateApi", { apiId: ids.apis.get(label)!, ...members })),
    );
  }
  for (const label of apis.extra) {
    extras.push(
      remove("api", label, (call) => call("apis.deleteApi", { apiId: ids.apis.get(label)! }), ["with all its keys"]),
    );
  }
  return { changes, extras };
}

/** The verifier without the values of its headers, which the service does not return. */
function comparable({ url, headers, timeout, onOutage }: DocumentUpstream): Json {
  return { url, headers: headers.map(({ name }) => name), timeout, onOutage };
}

function planBudgets(desired: Document, actual: WholeDocument, ids: Ids): Plan {
  const changes: Change[] = [];
  const extras: Change[] = [];
  const budgets = compareLabelled(desired.budgets, actual.budgets);
  for (const [label, { name, parent, ...members }] of budgets.created) {
    changes.push(
      create("budget", label, given({ parent, ...members }), async (call) => {
        await pause(CREATION_GAP);
        const parentId = parent === undefined ? undefined : ids.budgets.get(parent);
        if (parent !== undefined && parentId === undefined) {
          throw new CommandError(`Its parent ${parent} does not exist. Write it before its children.`);
        }
        const { budgetId } = await call("budgets.createBudget", given({ name, parentId, ...members }));
        ids.budgets.set(label, String(budgetId));
      }),
    );
  }
  for (const [label, wanted, found] of budgets.common) {
    for (const member of ["parent", "unit"] as const) {
      if (wanted[member] === undefined || wanted[member] === found[member]) continue;
      throw new CommandError(
        `The ${member} of the budget ${label} is ${shown(found[member] ?? null)} and never changes. Write it as it is, or ` +
          "give the new budget another name. Nothing was changed.",
      );
    }
    const [next, former] = [budgetMembers(wanted), budgetMembers(found)];
    const details = differences(next, former);
    if (details.length === 0) continue;
    const { meta, ...members } = changedMembers(next, former);
    const body = { ...members, ...(meta !== undefined && { meta: meta ?? {} }) };
    changes.push(
      update("budget", label, details, (call) =>
        call("budgets.updateBudget", { budgetId: ids.budgets.get(label), ...body }),
      ),
    );
  }
  for (const label of budgets.extra) {
    extras.push(remove("budget", label, (call) => call("budgets.deleteBudget", { budgetId: ids.budgets.get(label) })));
  }
  return { changes, extras };
}

/** What can be changed of a budget, in the form of the service. */
function budgetMembers({ refill, onEmpty = "deny", thresholds = [], meta = {} }: DocumentBudget): Json {
  const { interval, amount, refillDay = 1, refillMonth = 1, timeZone, rollover } = refill ?? {};
  return {
    refill:
      interval === undefined
        ? null
        : {
            interval,
            amount,
            ...(hasDay(interval) && { refillDay }),
            ...(interval === "yearly" && { refillMonth }),
            ...given({ timeZone, rollover }),
          },
    onEmpty,
    thresholds: [...new Set(thresholds)].sort((a, b) => a - b),
    meta: Object.keys(meta).length > 0 ? meta : null,
  };
}

function planPlans(desired: Document, actual: WholeDocument, ids: Ids): Plan {
  const changes: Change[] = [];
  const extras: Change[] = [];
  const plans = compare(desired.plans, actual.plans, ({ name }) => name);
  for (const { name, ...members } of plans.created) {
    changes.push(
      create("plan", name, given(members), async (call) => {
        await pause(CREATION_GAP);
        const { planId } = await call("plans.createPlan", given({ name, ...members }));
        ids.plans.set(name, String(planId));
      }),
    );
  }
  for (const [wanted, found] of plans.common) {
    const [next, former] = [comparablePlan(wanted), comparablePlan(found)];
    const details = differences({ ...noneOf(former), ...next }, former);
    if (details.length === 0) continue;
    const body = { plan: wanted.name, ...changedMembers(planMembers(wanted), planMembers(found)) };
    changes.push({
      ...update("plan", wanted.name, details, (call) => call("plans.updatePlan", body)),
      preview: body,
    });
  }
  for (const { name } of plans.extra) {
    extras.push(remove("plan", name, (call) => call("plans.deletePlan", { plan: name })));
  }
  return { changes, extras };
}

/** The same members without a value, so that those that are no longer there differ. */
function noneOf(members: Json): Json {
  return Object.fromEntries(Object.keys(members).map((name) => [name, null]));
}

function planRootKeys(desired: Document, actual: WholeDocument, ids: Ids, isOwn: (label: string) => boolean): Plan {
  const changes: Change[] = [];
  const extras: Change[] = [];
  const rootKeys = compareLabelled(desired.rootKeys, actual.rootKeys);
  for (const [label, { name, permissions, enabled = true, expires, leakAction }] of rootKeys.created) {
    changes.push(
      create(
        "root key",
        label,
        given({ permissions, enabled: enabled ? undefined : false, expires, leakAction }),
        async (call, onIssued) => {
          await pause(CREATION_GAP);
          const grants = permissions.map((grant) => withIds(grant, ids));
          const { rootKeyId, key } = await call(
            "rootKeys.createRootKey",
            given({ name, permissions: grants, expires, leakAction }),
          );
          ids.rootKeys.set(label, String(rootKeyId));
          onIssued({ name, rootKeyId: String(rootKeyId), key: String(key) });
          if (!enabled) await call("rootKeys.updateRootKey", { rootKeyId, enabled });
        },
      ),
    );
  }
  for (const [label, wanted, found] of rootKeys.common) {
    const members = ({ enabled = true, expires, leakAction = "mark" }: DocumentRootKey) => ({
      enabled,
      expires: expires ?? null,
      leakAction,
    });
    const own = differences(members(wanted), members(found));
    const grants = setDifference(wanted.permissions, found.permissions, (grant) => grant);
    if (own.length + grants.length === 0) continue;
    changes.push(
      update("root key", label, [...own, ...(grants.length > 0 ? [`permissions: ${grants.join(" ")}`] : [])], (call) =>
        call("rootKeys.updateRootKey", {
          rootKeyId: ids.rootKeys.get(label)!,
          ...members(wanted),
          permissions: wanted.permissions.map((grant) => withIds(grant, ids)),
        }),
      ),
    );
  }
  for (const label of rootKeys.extra) {
    if (isOwn(label)) continue;
    extras.push(
      remove("root key", label, (call) => call("rootKeys.deleteRootKey", { rootKeyId: ids.rootKeys.get(label)! })),
    );
  }
  return { changes, extras };
}

async function listNamespace(call: CallOperation, name: string): Promise<Json[]> {
  const found = (await call("ratelimits.listNamespaces", {
    search: name.slice(0, 256).trim(),
    limit: 100,
  })) as unknown as Json[];
  return found.filter((row) => row.name === name);
}

interface Comparison<Item> {
  created: Item[];
  common: (readonly [wanted: Item, found: Item])[];
  extra: Item[];
}

/** Compares two lists by a unique key. A list that is absent in the document is left alone. */
function compare<Item>(
  desired: readonly Item[] | undefined,
  actual: readonly Item[],
  keyOf: (item: Item) => string,
): Comparison<Item> {
  if (!desired) return { created: [], common: [], extra: [] };
  const found = new Map(actual.map((item) => [keyOf(item), item]));
  const wanted = new Set(desired.map(keyOf));
  return {
    created: desired.filter((item) => !found.has(keyOf(item))),
    common: desired.flatMap((item) => (found.has(keyOf(item)) ? [[item, found.get(keyOf(item))!] as const] : [])),
    extra: actual.filter((item) => !wanted.has(keyOf(item))),
  };
}

/** Compares two lists by their labels. */
function compareLabelled<Item extends { name: string }>(desired: readonly Item[] | undefined, actual: readonly Item[]) {
  const labelled = (items: readonly Item[]) => {
    const names = labels(items.map(({ name }) => name));
    return items.map((item, i) => ({ label: names[i]!, item }));
  };
  const { created, common, extra } = compare(desired && labelled(desired), labelled(actual), ({ label }) => label);
  return {
    created: created.map(({ label, item }) => [label, item] as const),
    common: common.map(([wanted, found]) => [wanted.label, wanted.item, found.item] as const),
    extra: extra.map(({ label }) => label),
  };
}

function create(
  kind: string,
  name: string,
  members: Json,
  run: (call: CallOperation, onIssued: (issued: CreatedRootKey) => void) => Promise<unknown>,
): Change {
  const details = Object.entries(members).map(([member, value]) => `${member}: ${shown(value)}`);
  return { action: "create", kind, name, details, run: async (call, onIssued) => void (await run(call, onIssued)) };
}

function update(
  kind: string,
  name: string,
  details: readonly string[],
  run: (call: CallOperation) => Promise<unknown>,
): Change {
  return { action: "update", kind, name, details, run: async (call) => void (await run(call)) };
}

function remove(
  kind: string,
  name: string,
  run: (call: CallOperation) => Promise<unknown>,
  details: readonly string[] = [],
): Change {
  return { action: "delete", kind, name, details, run: async (call) => void (await run(call)) };
}

/** The members that differ, with both values. Null and an absent member are equal. */
function differences(next: Json, found: Json): string[] {
  return Object.entries(changedMembers(next, found)).map(
    ([name, value]) => `${name}: ${shown(found[name] ?? null)} → ${shown(value ?? null)}`,
  );
}

function changedMembers(next: Json, found: Json): Json {
  return Object.fromEntries(
    Object.entries(next).filter(
      ([name, value]) => JSON.stringify(value ?? null) !== JSON.stringify(found[name] ?? null),
    ),
  );
}

/** The additions with `+` and the removals with `-`. */
function setDifference(next: readonly string[], found: readonly string[], keyOf: (text: string) => string): string[] {
  const [wanted, former] = [new Set(next.map(keyOf)), new Set(found.map(keyOf))];
  return [
    ...next.filter((text) => !former.has(keyOf(text))).map((text) => `+${text}`),
    ...found.filter((text) => !wanted.has(keyOf(text))).map((text) => `-${text}`),
  ];
}

/** The members that have a value. */
function given(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null));
}

function shown(value: unknown): string {
  if (value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
