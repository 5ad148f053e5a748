/** `latchkey apply`, `diff` and `export`: what a service has, as a document. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { Document } from "../src/cli/service-rules.ts";
import { createApi } from "../src/features/apis/createApi.ts";
import { updateApi } from "../src/features/apis/updateApi.ts";
import { createBudget } from "../src/features/budgets/createBudget.ts";
import { updateBudget } from "../src/features/budgets/updateBudget.ts";
import { createPermission } from "../src/features/permissions/createPermission.ts";
import { createRole } from "../src/features/permissions/createRole.ts";
import { updatePermission } from "../src/features/permissions/updatePermission.ts";
import { updateRole } from "../src/features/permissions/updateRole.ts";
import { createPlan } from "../src/features/plans/createPlan.ts";
import { updatePlan } from "../src/features/plans/updatePlan.ts";
import { setDescriptors } from "../src/features/ratelimits/setDescriptors.ts";
import { setOverride } from "../src/features/ratelimits/setOverride.ts";
import { createRootKey } from "../src/features/rootKeys/createRootKey.ts";
import { updateRootKey } from "../src/features/rootKeys/updateRootKey.ts";
import { CommandLine } from "./command-line.ts";
import { makeFolder, ROOT_KEY, type Server, start } from "./process.ts";

const document = {
  permissions: [{ slug: "documents.read", name: "Read documents", description: "Reads." }, { slug: "documents.write" }],
  roles: [
    { name: "editor", description: "Reads and writes.", permissions: ["documents.read", "documents.write"] },
    { name: "guest" },
  ],
  namespaces: [
    {
      name: "emails",
      overrides: [
        { identifier: "z_*", limit: 100, duration: 60_000 },
        { identifier: "a_*", limit: 0, duration: 60_000 },
      ],
    },
    {
      name: "letters",
      descriptors: [
        {
          key: "remote_address",
          rate_limit: { requests_per_unit: 100, unit: "minute" },
          descriptors: [{ key: "path", value: "/login*", rate_limit: { requests_per_unit: 5, unit: "minute" } }],
        },
      ],
    },
  ],
  apis: [
    { name: "Documents", prefix: "doc", byteLength: 32, deleteProtection: true, allowedIps: ["198.51.100.0/24"] },
    { name: "Twice" },
    { name: "Twice", prefix: "two" },
  ],
  budgets: [
    { name: "company", remaining: 300, refill: { interval: "weekly", amount: 300, refillDay: 1 }, unit: "token" },
    { name: "search", remaining: 100, parent: "company", unit: "token", thresholds: [80, 100] },
  ],
  plans: [
    {
      name: "customer",
      budget: {
        amount: 900,
        refill: { interval: "weekly", refillDay: 1 },
        unit: "token",
        onEmpty: "allow",
        thresholds: [80],
      },
    },
    {
      name: "gold",
      ratelimits: [
        { name: "exports", limit: 5, duration: 86_400_000, mode: "strict", autoApply: false },
        { name: "requests", limit: 600, duration: 60_000, autoApply: true, shadow: true },
      ],
      concurrency: [
        { name: "jobs", limit: 3 },
        { name: "streams", limit: 10 },
      ],
      credits: { amount: 5_000, refill: { interval: "monthly", refillDay: 15, timeZone: "Europe/Berlin" } },
      permissions: ["documents.read"],
      roles: ["editor"],
    },
    { name: "silver" },
  ],
  rootKeys: [
    {
      name: "sign-up",
      permissions: [
        "apis.{Documents}.create_key",
        "apis.{Twice#2}.read_key",
        "ratelimits.{emails}.limit",
        "budgets.{search}.assign_budget",
        "plans.{gold}.assign_plan",
      ],
    },
    { name: "old", permissions: ["apis.*.read_key"], enabled: false, expires: "2030-01-01T00:00:00.000Z" },
  ],
};

const inputOf = <Input extends z.ZodObject>({ declaration }: { declaration: { input: Input } }) => declaration.input;
/** The schema of an entry of a section. */
const memberOf = <Section extends keyof typeof Document.shape>(section: Section) =>
  Document.shape[section].unwrap().element as (typeof Document.shape)[Section]["_zod"]["def"]["innerType"]["element"];

describe("documents", () => {
  const directory = makeFolder({ after });
  let server: Server;
  let commandLine: CommandLine;
  before(async () => {
    commandLine = new CommandLine();
    server = await start({ directory });
  });
  after(() => commandLine.close());

  /** An empty workspace, and commands on it. */
  async function workspace(t: TestContext) {
    const { key } = await server.ok("workspaces.createWorkspace", { name: "documents" }, ROOT_KEY);
    const directory = makeFolder(t);
    const environment: Record<string, string> = {
      HOME: directory,
      LATCHKEY_URL: server.address,
      LATCHKEY_ROOT_KEY: key as string,
    };
    const run = (...args: string[]) => commandLine.run({ args, environment, directory });
    const withDocument = async (command: string, content: unknown, ...args: string[]) => {
      writeFileSync(join(directory, "latchkey.yaml"), typeof content === "string" ? content : stringify(content));
      return run(command, "-f", "latchkey.yaml", ...args);
    };
    return {
      key: key as string,
      environment,
      run,
      apply: (content: unknown, ...args: string[]) => withDocument("apply", content, ...args),
      diff: (content: unknown, ...args: string[]) => withDocument("diff", content, ...args),
      ok: (operation: string, body: object) => server.ok(operation, body, key),
    };
  }

  it("are applied, and a second time changes nothing", async (t) => {
    const { apply, diff, ok } = await workspace(t);
    const planned = await diff(document);
    assert.equal(planned.code, 1, planned.stderr);
    assert.match(planned.stdout, /^\+ permission documents\.read {2}name: Read documents, description: Reads\.\n/);
    assert.match(planned.stdout, /\n19 to create, 0 to update, 0 to delete\.\n$/);
    assert.deepEqual(await ok("apis.listApis", {}), [], "diff has changed something");

    const first = await apply(document);
    assert.equal(first.code, 0, first.stderr);
    assert.equal(first.stdout.match(/shown this once:\n {2}lk_root_\w+\n/g)?.length, 2);
    const second = await apply(document);
    assert.equal(second.code, 0, second.stderr);
    assert.match(second.stdout, /^( {2}root key .*only in the service; --prune deletes it\)\n)?Nothing to change\.\n$/);
    assert.equal((await diff(document)).code, 0);
    const asTyped = JSON.parse(JSON.stringify(document).replaceAll('"duration":60000', '"duration":"1m"'));
    assert.equal(asTyped.namespaces[0].overrides[0].duration, "1m");
    assert.equal((await diff(asTyped)).code, 0);
  });

  it("that are exported and applied to an empty service give the same export", async (t) => {
    const [source, target] = [await workspace(t), await workspace(t)];
    assert.equal((await source.apply(document)).code, 0);
    const exported = (await source.run("export")).stdout;
    const { rootKeys, ...rest } = parse(exported);
    const { rootKeys: _, ...described } = document;
    assert.deepEqual(rest, {
      ...described,
      permissions: [document.permissions[0], { slug: "documents.write", name: "documents.write" }],
    });
    assert.deepEqual(rootKeys.slice(1), document.rootKeys);
    assert(!/lk_root|api_|rlns_|bud_|plan_/.test(exported), "the export has a secret or an id");

    const applied = await target.apply(exported);
    assert.equal(applied.code, 0, applied.stderr);
    assert.equal((await target.run("export")).stdout, exported);
    assert.deepEqual(JSON.parse((await target.run("export", "--json")).stdout), parse(exported));
    const { apis } = parse((await target.run("export", "--sections", "apis")).stdout);
    assert.deepEqual(apis, document.apis);
  });

  it("have every field of the operations, and each is applied, exported and removed", async (t) => {
    const { apply, diff, run } = await workspace(t);
    const apiOf = (upstream: object) => ({
      name: "Documents",
      prefix: "doc",
      byteLength: 32,
      deleteProtection: true,
      allowedIps: ["198.51.100.0/24"],
      leakAction: "disable",
      expiryNotices: [30, 7],
      upstream,
      ownKeyAccess: true,
      ownKeyDerivation: true,
      policy: { expiry: { default: 86_400_000, max: 864_000_000 }, limitsRequired: true, prefixFixed: true },
      resources: ["https://api.example.com"],
      portal: { actions: ["list", "usage"], page: { name: "Acme", language: "pt" } },
    });
    const rootKey = {
      name: "sign-up",
      permissions: ["apis.{Documents}.create_key"],
      enabled: false,
      expires: "2030-01-01T00:00:00.000Z",
      leakAction: "disable",
    };
    const budget = {
      name: "search",
      remaining: 5,
      refill: { interval: "yearly", amount: 5, refillDay: 1, refillMonth: 2, timeZone: "UTC", rollover: 3 },
      unit: "token",
      meta: { cost: 7 },
      parent: "company",
      onEmpty: "allow",
      thresholds: [50, 100],
    };
    const plan = {
      name: "gold",
      ratelimits: [{ name: "requests", limit: 600, duration: 60_000, autoApply: true }],
      concurrency: [{ name: "jobs", limit: 3 }],
      credits: { amount: 5_000 },
      permissions: ["documents.read"],
      roles: ["editor"],
      meta: { price: 20 },
    };
    // A plan has credits or a budget.
    const ofCustomers = {
      name: "customer",
      budget: { amount: 9, refill: { interval: "daily" }, onEmpty: "allow", thresholds: [50], unit: "token" },
    };
    const override = { identifier: "a_*", limit: 1, duration: 60_000, mode: "strict", shadow: true };
    const tree = { descriptors: [{ key: "user", rate_limit: { unlimited: true } }], atomic: true, metadata: true };
    const withUpstream = (upstream: object) => ({
      permissions: [{ slug: "documents.read", name: "Read documents", description: "Reads." }],
      roles: [{ name: "editor", description: "Reads.", permissions: ["documents.read"] }],
      namespaces: [{ name: "emails", overrides: [override], ...tree }],
      apis: [apiOf(upstream)],
      budgets: [{ name: "company", remaining: 10, unit: "token" }, budget],
      plans: [ofCustomers, plan],
      rootKeys: [rootKey],
    });
    const upstream = { url: "https://old.example.com/verify", headers: [], timeout: 1_000, onOutage: "not_found" };
    const whole = withUpstream(upstream);

    // A field that is added to an operation is one of the file, and of the entries above.
    const isPartOf: [entry: object, schema: z.ZodObject, operations: z.ZodObject[], references: string[]][] = [
      [whole.apis[0]!, memberOf("apis"), [inputOf(createApi), inputOf(updateApi)], ["apiId"]],
      [upstream, inputOf(updateApi).shape.upstream.unwrap().unwrap(), [], []],
      [rootKey, memberOf("rootKeys"), [inputOf(createRootKey), inputOf(updateRootKey)], ["rootKeyId"]],
      [budget, memberOf("budgets"), [inputOf(createBudget), inputOf(updateBudget)], ["budgetId", "parentId"]],
      [{ ...plan, ...ofCustomers }, memberOf("plans"), [inputOf(createPlan), inputOf(updatePlan)], ["plan"]],
      [whole.roles[0]!, memberOf("roles"), [inputOf(createRole), inputOf(updateRole)], ["role"]],
      [
        whole.permissions[0]!,
        memberOf("permissions"),
        [inputOf(createPermission), inputOf(updatePermission)],
        ["permission"],
      ],
      [override, memberOf("namespaces").shape.overrides.unwrap().element, [inputOf(setOverride)], ["namespace"]],
      [
        whole.namespaces[0]!,
        memberOf("namespaces"),
        [inputOf(setDescriptors).extend({ name: z.string(), overrides: z.array(z.string()) })],
        ["namespace"],
      ],
    ];
    for (const [entry, schema, operations, references] of isPartOf) {
      const fields = new Set([schema, ...operations].flatMap(({ shape }) => Object.keys(shape)));
      for (const reference of references) fields.delete(reference);
      assert.deepEqual(Object.keys(entry).sort(), [...fields].sort());
      assert.deepEqual(Object.keys(schema.shape).sort(), [...fields].sort());
    }

    const exported = async () => {
      const { rootKeys, ...rest } = parse((await run("export")).stdout);
      return { ...rest, rootKeys: rootKeys.slice(1) };
    };
    const applied = await apply(whole);
    assert.equal(applied.code, 0, applied.stderr);
    assert.deepEqual(await exported(), whole);
    assert.equal((await diff(whole)).code, 0);

    const needed = ["name", "slug", "identifier", "limit", "duration", "permissions", "remaining", "unit", "parent"];
    const bare = JSON.parse(JSON.stringify(whole), (_, value) =>
      value?.name || value?.identifier || value?.slug
        ? Object.fromEntries(Object.entries(value).filter(([name]) => needed.includes(name)))
        : value,
    );
    const descriptors = [{ key: "user", rate_limit: { requests_per_unit: 1, unit: "day" } }];
    bare.namespaces = [{ name: "emails", overrides: [{ identifier: "a_*", limit: 1, duration: 60_000 }], descriptors }];
    const removed = await apply(bare);
    assert.equal(removed.code, 0, removed.stderr);
    assert.deepEqual(await exported(), bare);
    const restored = await apply(whole);
    assert.equal(restored.code, 0, restored.stderr);
    assert.deepEqual(await exported(), whole);
    const changed = withUpstream({ ...upstream, timeout: 2_000 });
    assert.match((await diff(changed)).stdout, /^~ api Documents {2}upstream: \{.*"timeout":1000.* → .*"timeout":2000/);
  });

  it("have trees of descriptors, whose changes are listed one by one", async (t) => {
    const { apply, diff, run, ok } = await workspace(t);
    const limit = (requests_per_unit: number) => ({ rate_limit: { requests_per_unit, unit: "minute" } });
    const treeOf = (...descriptors: object[]) => ({ namespaces: [{ name: "edge", descriptors }] });
    const nested = { key: "path", value: "/a", ...limit(2) };
    const first = treeOf({ key: "user", shadow_mode: false, descriptors: [nested] }, { key: "ip", ...limit(1) });
    assert.match(
      (await diff(first)).stdout,
      /^\+ descriptors edge {2}\+user \{\}, \+user \/ path=\/a \{"rate_limit":.*, \+ip /m,
    );
    assert.equal((await apply(first)).code, 0);
    assert.equal((await diff(first)).stdout, "Nothing to change.\n");
    const changed = treeOf({ key: "user", descriptors: [{ ...nested, ...limit(3) }] }, { key: "ip", ...limit(1) });
    const { stdout } = await diff(changed);
    assert.match(stdout, /^~ descriptors edge {2}\+user \/ path=\/a .*:3,.*, -user \/ path=\/a .*:2,[^,]*$/m);
    const atomic = { namespaces: [{ ...first.namespaces[0], atomic: true }] };
    assert.match((await diff(atomic)).stdout, /^~ descriptors edge {2}atomic: false → true$/m);
    const reordered = treeOf(...[...first.namespaces[0]!.descriptors].reverse());
    assert.match((await diff(reordered)).stdout, /^~ descriptors edge {2}another order$/m);
    // A tree that only the service has stays, until it is pruned.
    const without = { namespaces: [{ name: "edge" }] };
    assert.match((await apply(without)).stdout, /descriptors edge.*only in the service/);
    assert.match((await run("export", "--sections", "namespaces")).stdout, /value: \/a/);
    assert.equal((await apply(without, "--prune", "--yes")).code, 0);
    assert.deepEqual((await ok("ratelimits.getDescriptors", { namespace: "edge" })).descriptors, []);
    const mistaken = await apply(treeOf({ key: "user", share_threshold: true }));
    assert.equal(mistaken.code, 1);
    assert.match(mistaken.stderr, /namespaces\[0\]\.descriptors\[0\]\.share_threshold needs a value/);
  });

  it("take the values of headers from variables, and show none", async (t) => {
    const { apply, diff, run, ok, environment } = await workspace(t);
    const documentOf = (headers: object[], rest: object = {}) => ({
      apis: [{ name: "Moved", ...rest, upstream: { url: "https://old.example.com/verify", headers, timeout: "3s" } }],
    });
    // biome-ignore lint/suspicious/noTemplateCurlyInString: how a document names a variable.
    const document = documentOf([{ name: "Authorization", value: "${OLD_TOKEN}" }]);
    const unset = await apply(document);
    assert.equal(unset.code, 1);
    assert.equal(
      unset.stderr,
      "latchkey: The variable OLD_TOKEN is not set. It is the value of the header Authorization of the upstream of the API " +
        "Moved. Nothing was changed.\n",
    );
    assert.deepEqual(await ok("apis.listApis", {}), []);
    assert.equal((await diff(document)).code, 1, "diff needs a value");

    environment.OLD_TOKEN = "Bearer secret";
    const applied = await apply(document);
    assert.equal(applied.code, 0, applied.stderr);
    const [{ upstream }] = await ok("apis.listApis", {});
    assert.deepEqual([upstream.headers, upstream.timeout], [["Authorization"], 3_000]);
    const exported = (await run("export", "--sections", "apis")).stdout;
    assert(!/secret|OLD_TOKEN/.test(applied.stdout + exported), applied.stdout + exported);

    // What was exported needs no value as long as the verifier stays.
    delete environment.OLD_TOKEN;
    const unchanged = await apply(exported);
    assert.deepEqual([unchanged.code, unchanged.stdout], [0, "Nothing to change.\n"]);
    const renamed = await apply(documentOf([{ name: "Authorization" }], { prefix: "moved" }));
    assert.deepEqual([renamed.code, renamed.stderr], [0, ""]);
    const moved = await apply(documentOf([{ name: "Authorization" }, { name: "X-Tenant", value: "a" }]));
    assert.match(
      moved.stderr,
      /^latchkey: The value of the header Authorization of .* Moved is missing\. Write a variable/,
    );
    assert.deepEqual((await ok("apis.listApis", {}))[0].upstream.headers, ["Authorization"]);
  });

  it("have budgets that are overspent, and root keys also where nobody may read budgets", async (t) => {
    const { apply, run, ok, environment } = await workspace(t);
    assert.equal((await apply({ budgets: [{ name: "counted", remaining: 0, onEmpty: "allow" }] })).code, 0);
    const [{ budgetId }] = await ok("budgets.listBudgets", {});
    const { apiId } = await ok("apis.createApi", { name: "Overspent" });
    const { key } = await ok("keys.createKey", { apiId, budgetId });
    await ok("keys.verifyKey", { key, credits: { cost: 30 } });
    assert.equal((await ok("budgets.getBudget", { budgetId })).remaining, -30);
    const exported = (await run("export", "--sections", "budgets")).stdout;
    assert.equal((await apply(exported)).stdout, "Nothing to change.\n");
    const permissions = ["apis.*.read_api", "ratelimits.*.read_namespace", "rootKeys.*.read_root_key"];
    const narrow = await ok("rootKeys.createRootKey", { name: "narrow", permissions });
    environment.LATCHKEY_ROOT_KEY = narrow.key;
    const { code, stderr, stdout } = await run("export", "--sections", "rootKeys");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /narrow/);
  });

  it("say what a change of a plan does to how many keys, before it is made", async (t) => {
    const { apply, diff, run, ok } = await workspace(t);
    const gold = (limit: number, duration: unknown = "1m") => ({
      plans: [{ name: "gold", ratelimits: [{ name: "requests", limit, duration, autoApply: true }] }],
    });
    assert.equal((await apply(gold(600))).code, 0);
    const { apiId } = await ok("apis.createApi", { name: "planned" });
    const own = { ratelimits: [{ name: "requests", limit: 1, duration: 1_000, autoApply: true }] };
    for (const more of [{}, {}, own]) await ok("keys.createKey", { apiId, plan: "gold", ...more });
    await ok("identities.createIdentity", { externalId: "acme", plan: "gold" });

    const raised = await diff(gold(1_000));
    assert.equal(raised.code, 1);
    assert.equal(
      raised.stdout,
      '~ plan gold  limit requests: {"limit":600,"duration":60000,"autoApply":true} → ' +
        '{"limit":1000,"duration":60000,"autoApply":true}\n' +
        "    requests: 2 keys and 1 identity; 1 key with a limit of their own stay\n" +
        "0 to create, 1 to update, 0 to delete.\n",
    );
    const [change] = JSON.parse((await diff(gold(1_000, "1h"), "--json")).stdout).changes;
    assert.match(change.effects[0], /; what was counted so far no longer counts$/);
    assert.equal((await ok("plans.getPlan", { plan: "gold" })).version, 1, "diff has changed something");

    const applied = await apply(gold(1_000));
    assert.equal(applied.code, 0, applied.stderr);
    assert.match(applied.stdout, /\n {4}requests: 2 keys and 1 identity;/);
    const { ratelimits } = await ok("plans.getPlan", { plan: "gold" });
    assert.equal(ratelimits[0].limit, 1_000);
    const emptied = await apply({ plans: [{ name: "gold" }] });
    assert.match(emptied.stdout, /limit requests: \{.*\} → none/);
    assert.deepEqual((await ok("plans.getPlan", { plan: "gold" })).ratelimits, []);
    const used = await apply({ plans: [] }, "--prune", "--yes");
    assert.deepEqual([used.code, /delete plan gold: /.test(used.stderr)], [1, true]);
    assert.equal((await run("export", "--sections", "plans")).stdout, "plans:\n  - name: gold\n");
  });

  it("say what never changes of a budget, and need its parent first", async (t) => {
    const { apply, diff, ok } = await workspace(t);
    const [company, search] = document.budgets;
    const unsorted = await apply({ budgets: [search, company] });
    assert.equal(unsorted.code, 1);
    assert.match(
      unsorted.stderr,
      /create budget search: Its parent company does not exist\. Write it before its children/,
    );
    const defaults = { ...company, refill: { interval: "weekly", amount: 300 } };
    assert.equal((await apply({ budgets: [defaults, search] })).code, 0);
    assert.equal((await diff({ budgets: [defaults, search] })).code, 0);
    const moved = await apply({ budgets: [defaults, { ...search, unit: "usd" }] });
    assert.match(moved.stderr, /^latchkey: The unit of the budget search is token and never changes\./);
    const raised = await apply({
      budgets: [
        { ...defaults, remaining: 1 },
        { ...search, thresholds: [100, 90] },
      ],
    });
    assert.match(raised.stdout, /^~ budget search {2}thresholds: \[80,100\] → \[90,100\]\n0 to create, 1 to update/);
    const budgets = await ok("budgets.listBudgets", {});
    assert.deepEqual(
      budgets.map(({ remaining }: { remaining: number }) => remaining),
      [300, 100],
    );
    const pruned = await apply({ budgets: [] }, "--prune", "--yes");
    assert.equal(pruned.code, 0, pruned.stderr);
    assert.deepEqual(await ok("budgets.listBudgets", {}), []);
  });

  it("change what differs, and leave what has no section", async (t) => {
    const { apply, run, ok } = await workspace(t);
    await apply(document);
    const changed = {
      permissions: [{ slug: "Documents.Read", name: "Read" }, { slug: "documents.write" }],
      roles: [{ name: "editor", permissions: ["documents.read", "documents.share"] }, { name: "guest" }],
      apis: [{ name: "Documents", prefix: "docs" }, { name: "Twice" }, { name: "Twice", prefix: "two" }],
    };
    const { code, stdout, stderr } = await apply(changed);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^~ permission Documents\.Read {2}slug: documents\.read → Documents\.Read, name: Read documents → Read, description: Reads\. → none\n/,
    );
    assert.match(
      stdout,
      /\n~ role editor {2}description: Reads and writes\. → none, permissions: \+documents\.share -documents\.write\n/,
    );
    assert.match(
      stdout,
      /\n~ api Documents {2}prefix: doc → docs, byteLength: 32 → none, deleteProtection: true → false, allowedIps: \["198\.51\.100\.0\/24"\] → none\n/,
    );
    const roles = await ok("permissions.listRoles", {});
    assert.deepEqual(
      roles[0].permissions.map(({ slug }: { slug: string }) => slug),
      ["Documents.Read", "documents.share"],
    );
    const { namespaces } = parse((await run("export")).stdout);
    assert.deepEqual(namespaces, document.namespaces);
    assert.match((await apply(changed)).stdout, /(^|\n)Nothing to change\.\n$/);
  });

  it("delete what they do not have only with --prune and a confirmation", async (t) => {
    const { apply, diff, run, ok, key } = await workspace(t);
    await apply({ ...document, apis: document.apis.map((api) => ({ ...api, deleteProtection: false })) });
    const rest = {
      permissions: [],
      roles: [],
      namespaces: [{ name: "emails" }],
      apis: [],
      budgets: [],
      plans: [],
    };
    const empty = { ...rest, rootKeys: [] };
    const kept = await apply(empty);
    assert.equal(kept.code, 0);
    assert.match(
      kept.stdout,
      / {2}api Documents {2}with all its keys {2}\(only in the service; --prune deletes it\)\n/,
    );
    assert.match(kept.stdout, /\nNothing to change\.\n$/);
    assert.equal((await diff(empty)).code, 0);
    assert.equal((await diff(empty, "--prune")).code, 1);

    const asked = await apply(empty, "--prune");
    assert.equal(asked.code, 2);
    assert.match(
      asked.stderr,
      /^latchkey: Delete \d+ of these at http:\S+\? Without a terminal to answer on, add --yes\. Nothing was changed\.\n$/,
    );
    const askedAsJson = await apply(empty, "--prune", "--json");
    assert.deepEqual([askedAsJson.code, askedAsJson.stdout], [2, ""]);
    assert.match(
      askedAsJson.stderr,
      /^- .*\n(.*\n)*- override emails z_\*\n(.*\n)*0 to create, 0 to update, \d+ to delete\.\nlatchkey: Delete \d+ of these at /,
    );
    assert.equal((await ok("apis.listApis", {})).length, 3);

    const pruned = await apply(empty, "--prune", "--yes");
    assert.equal(pruned.code, 0, pruned.stderr);
    assert.match(pruned.stdout, /\n- override emails z_\*\n/);
    const { rootKeys, ...others } = parse((await run("export")).stdout);
    assert.deepEqual(others, rest);
    assert.equal(rootKeys.length, 1, "the root key of the caller is kept");
    assert.equal((await server.call("apis.listApis", {}, key)).status, 200);
  });

  it("that are not valid change nothing, and name each mistake", async (t) => {
    const { apply, ok } = await workspace(t);
    const wrong: [content: string, message: RegExp][] = [
      ["apis: [", /^latchkey: latchkey\.yaml is not YAML\.\n {2}.* at line 1/],
      ["apis:\n  - nmae: a\n", /^latchkey: latchkey\.yaml is not valid\.\n(.*\n)*.*'name'/],
      ["apis:\n  - name: a\n    byteLength: 1\n", /apis\[0\]\.byteLength must be at least 16/],
      ["apis:\n  - name: a\nkeys: []\n", /'keys' that is not known/],
      ["roles:\n  - name: a\n  - name: A\n", /names a a second time/],
      [
        `a: &a [${"x,".repeat(50)}]\nb: &b [${"*a,".repeat(50)}]\nc: [${"*b,".repeat(50)}]\n`,
        /cannot be read: Excessive alias count/,
      ],
    ];
    for (const [content, message] of wrong) {
      const { code, stderr } = await apply(content);
      assert.equal(code, 1, content);
      assert.match(stderr, message);
    }
    assert.deepEqual(await ok("apis.listApis", {}), []);
  });

  it("that hold what cannot be kept change nothing, also not what comes before it (rule 235)", async (t) => {
    const { environment, ok } = await workspace(t);
    const first = "permissions:\n  - slug: before\n";
    const plan = (meta: string) => `${first}plans:\n  - name: a\n    meta: ${meta}\n`;
    const wrong: [content: string | Buffer, message: RegExp][] = [
      [plan('{ a: "\\ud800" }'), /half of a surrogate pair/],
      [plan('{ "\\udc00": 1 }'), /half of a surrogate pair/],
      [plan("{ __proto__: { a: 1 } }"), /'__proto__' cannot be the name of a property/],
      ...["9007199254740993", "1e999", "-.inf", ".nan", "0x20000000000001", "0.12345678901234567891"].map(
        (number): [string, RegExp] => [
          plan(`{ a: ${number} }`),
          /^latchkey: latchkey\.yaml has a number at line 5 that cannot be kept exactly\. Quote it\.\n$/,
        ],
      ),
      [
        Buffer.from(plan("{ a: M\u00fcller }"), "latin1"),
        /^latchkey: latchkey\.yaml is not UTF-8: see line 5\. Convert it, .*\n$/,
      ],
    ];
    const run = (command: string, content: string | Buffer) => {
      writeFileSync(join(environment.HOME!, "latchkey.yaml"), content);
      return commandLine.run({
        args: [command, "-f", "latchkey.yaml"],
        environment,
        directory: environment.HOME!,
      });
    };
    for (const [content, message] of wrong) {
      for (const command of ["diff", "apply"]) {
        const { code, stdout, stderr } = await run(command, content);
        assert.deepEqual([code, stdout], [1, ""], String(content));
        assert.match(stderr, message);
      }
    }
    assert.deepEqual(await ok("permissions.listPermissions", {}), []);
    const kept = "{ a: 9007199254740992, b: +1.50, c: 1e3, d: 0x1F, e: -.5, f: '1e999', g: 0.1 }";
    const { code, stderr } = await run("apply", plan(kept));
    assert.deepEqual([code, stderr], [0, ""]);
    const [{ meta }] = (await ok("plans.listPlans", {})) as unknown as [{ meta: object }];
    assert.deepEqual(meta, { a: 2 ** 53, b: 1.5, c: 1000, d: 31, e: -0.5, f: "1e999", g: 0.1 });
  });

  it("stop at a change that the service rejects, and continue with the next apply", async (t) => {
    const { apply } = await workspace(t);
    const broken = { ...document, rootKeys: [{ name: "typo", permissions: ["apis.{Documents}.make_key"] }] };
    const { code, stderr } = await apply(broken);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^latchkey: create root key typo: Bad Request \(400\): .*\n(.*\n)* {2}The changes above it are made\. Run apply again to continue\.\n$/,
    );
    const unknown = await apply({ rootKeys: [{ name: "a", permissions: ["apis.{Nothing}.read_key"] }] });
    assert.match(
      unknown.stderr,
      /create root key a: The permission apis\.\{Nothing\}\.read_key names something that does not exist\./,
    );
    assert.match((await apply(document)).stdout, /\n2 to create, 0 to update, 0 to delete\.\n/);
  });
});
