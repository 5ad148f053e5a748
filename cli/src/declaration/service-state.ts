import { call, type Endpoint, ServiceError } from "../call.ts";
import { declaredCommand } from "../declared.ts";
import { pages } from "../operation-commands.ts";
import { describedTree, type Tree } from "./descriptors.ts";
import type { Section, WholeDocument } from "./document.ts";
import { type Ids, labels, withNames } from "./names.ts";
import { isObject } from "./read-document.ts";

type Json = Record<string, unknown>;

/** What a service has, in the form of a document, with the ids. */
export interface ServiceState {
  readonly document: WholeDocument;
  readonly ids: Ids;
  /** The first characters of the root keys, by label. */
  readonly starts: ReadonlyMap<string, string>;
}

/** Reads these sections. Root keys need APIs and namespaces too, and budgets and plans if possible, because their permissions name them. */
export async function readService(
  endpoint: Endpoint,
  wanted: readonly Section[],
  timeout: number,
): Promise<ServiceState> {
  const isWanted = (section: Section) => wanted.includes(section);
  const all = async (operation: string, body: Json = {}): Promise<Json[]> => {
    const items: Json[] = [];
    for await (const page of pages(declaredCommand(operation), endpoint, body, timeout)) items.push(...page);
    return items;
  };
  /** None if the root key may not read them, or if the service has an earlier release: then ids stay in the place of names. */
  const allReadable = (operation: string): Promise<Json[]> =>
    all(operation).catch((error: unknown) => {
      if (error instanceof ServiceError && (error.status === 403 || error.status === 404)) return [];
      throw error;
    });
  /** None if the service has an earlier release. */
  const treeOf = async (namespace: string): Promise<Partial<Tree>> => {
    try {
      const body = JSON.stringify({ namespace });
      return (await call(endpoint, "ratelimits.getDescriptors", body, { repeatable: "always", timeout })).data;
    } catch (error) {
      if (error instanceof ServiceError && error.status === 404) return {};
      throw error;
    }
  };
  const named = (list: readonly Json[], id: string) =>
    new Map(labels(list.map(({ name }) => String(name))).map((label, i) => [label, String(list[i]![id])]));

  const needsNames = isWanted("rootKeys");
  const permissions = isWanted("permissions") ? await all("permissions.listPermissions") : [];
  const roles = isWanted("roles") ? await all("permissions.listRoles") : [];
  const namespaces = isWanted("namespaces") || needsNames ? await all("ratelimits.listNamespaces") : [];
  const apis = isWanted("apis") || needsNames ? await all("apis.listApis") : [];
  const budgets = isWanted("budgets")
    ? await all("budgets.listBudgets")
    : needsNames
      ? await allReadable("budgets.listBudgets")
      : [];
  const plans = isWanted("plans")
    ? await all("plans.listPlans")
    : needsNames
      ? await allReadable("plans.listPlans")
      : [];
  const listed = needsNames ? await all("rootKeys.listRootKeys") : [];
  // The root key of the configuration can be changed only there.
  const rootKeys = listed.filter(({ source }) => source !== "environment");
  const ids: Ids = {
    apis: named(apis, "apiId"),
    ratelimits: named(namespaces, "id"),
    budgets: named(budgets, "budgetId"),
    plans: named(plans, "planId"),
    rootKeys: named(rootKeys, "rootKeyId"),
  };
  const labelsOfBudgets = new Map([...ids.budgets].map(([label, id]) => [id, label]));
  const overrides: Json[][] = [];
  const trees: Partial<Tree>[] = [];
  for (const { id } of isWanted("namespaces") ? namespaces : []) {
    overrides.push(await all("ratelimits.listOverrides", { namespace: id }));
    trees.push(await treeOf(String(id)));
  }

  const document: { [Name in Section]: readonly unknown[] } = {
    permissions: permissions.map((row) => pick(row, "slug", "name", "description")).sort(by("slug")),
    roles: roles
      .map((row) => ({
        ...pick(row, "name", "description"),
        ...(Array.isArray(row.permissions) && { permissions: row.permissions.map(({ slug }) => slug) }),
      }))
      .sort(by("name")),
    namespaces: namespaces
      .map((row, i) => ({
        name: row.name,
        // In the order of their creation, which decides between patterns that are equally specific.
        ...(overrides[i]?.length && {
          overrides: overrides[i].map((one) => pick(one, "identifier", "limit", "duration", "mode", "shadow")),
        }),
        ...(trees[i] && describedTree(trees[i])),
      }))
      .sort(by("name")),
    apis: apis.map(({ upstream, ...row }) => ({
      ...pick(
        row,
        "name",
        "prefix",
        "byteLength",
        "deleteProtection",
        "allowedIps",
        "expiryNotices",
        "ownKeyAccess",
        "ownKeyDerivation",
        "resources",
        "policy",
        "portal",
      ),
      ...withLeakAction(row),
      ...(upstream !== undefined && { upstream: withHeaders(upstream as Upstream) }),
    })),
    budgets: budgets.map((row) => ({
      ...pick(row, "name", "refill", "unit", "meta"),
      // No budget begins below 0.
      remaining: Math.max(0, Number(row.remaining)),
      ...(row.parentId !== undefined && { parent: labelsOfBudgets.get(String(row.parentId)) }),
      ...(row.onEmpty === "allow" && { onEmpty: "allow" }),
      ...(Array.isArray(row.thresholds) && row.thresholds.length > 0 && { thresholds: row.thresholds }),
    })),
    plans: plans
      .map((row) => ({
        ...pick(row, "name", "meta", "credits"),
        ...documentBudget(row),
        ...withoutEmpty({
          concurrency: row.concurrency,
          ratelimits: (row.ratelimits as Json[]).map((limit) =>
            pick(limit, "name", "limit", "duration", "mode", "autoApply", "shadow"),
          ),
          permissions: row.permissions,
          roles: row.roles,
        }),
      }))
      .sort(by("name")),
    rootKeys: rootKeys.map((row) => ({
      name: row.name,
      permissions: (row.permissions as string[]).map((grant) => withNames(grant, ids)),
      ...(row.enabled === false && { enabled: false }),
      ...pick(row, "expires"),
      ...withLeakAction(row),
    })),
  };
  const starts = new Map(
    labels(rootKeys.map(({ name }) => String(name))).map((label, i) => [label, String(rootKeys[i]!.start)]),
  );
  return { document: document as WholeDocument, ids, starts };
}

interface Upstream extends Json {
  readonly headers: readonly string[];
}

/** The verifier as a document has it. The service returns the names of its headers, and a document names the others too. */
function withHeaders({ headers, ...upstream }: Upstream): Json {
  return { ...upstream, headers: headers.map((name) => ({ name })) };
}

/** What happens to leaked keys, if it is not the default. */
function withLeakAction({ leakAction }: Json): Json {
  return leakAction === undefined || leakAction === "mark" ? {} : { leakAction };
}

/** The lists that have entries. */
function withoutEmpty(lists: Json): Json {
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => Array.isArray(list) && list.length > 0));
}

/** The members that are present. */
function pick(row: Json, ...names: string[]): Json {
  return Object.fromEntries(names.filter((name) => row[name] !== undefined).map((name) => [name, row[name]]));
}

function by(name: string) {
  return (a: Json, b: Json) => (String(a[name]) < String(b[name]) ? -1 : 1);
}

/** The budget of a plan without what a document need not say. */
function documentBudget({ budget }: Json): Json {
  if (!isObject(budget)) return {};
  const { onEmpty, thresholds, ...others } = budget;
  return {
    budget: {
      ...others,
      ...(onEmpty === "allow" && { onEmpty }),
      ...(Array.isArray(thresholds) && thresholds.length > 0 && { thresholds }),
    },
  };
}
