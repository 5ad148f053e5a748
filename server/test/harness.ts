import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { sql as raw } from "kysely";
import inject from "light-my-request";
import { SimulatedClock } from "../../engine/src/clock/simulated.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { type AnalyticsProcedures, analyticsPlan } from "../src/features/analytics/sql/procedures.ts";
import type { IssuedRootKey } from "../src/features/workspaces/procedures.ts";
import { type Config, readConfig } from "../src/platform/config/config.ts";
import { readSecrets } from "../src/platform/config/secrets.ts";
import { namesOf, type Operation, pathOf, problemsOf, type Query } from "../src/platform/rpc/operation.ts";
import { commonProblems, type InputError, type ProblemCode, problems } from "../src/platform/rpc/problems.ts";
import { insertChange } from "../src/platform/store/changes.ts";
import { type EventType, eventTypes } from "../src/platform/store/events/types.ts";
import { mainPlan, migrate } from "../src/platform/store/migrate.ts";
import { openPostgresStore } from "../src/platform/store/postgres/store.ts";
import type { EventRow, Schema } from "../src/platform/store/schema.ts";
import { openSqliteStoreHere } from "../src/platform/store/sqlite/store-here.ts";
import type { Procedure, Sql, Store } from "../src/platform/store/store.ts";
import { openAnalyticsStore } from "../src/service/analytics.ts";
import { type AppStore, limitsOf, openStore } from "../src/service/app-store.ts";
import { operations, replicaOperations } from "../src/service/operations.ts";
import { type AppProcedures, openProcedures } from "../src/service/procedures.ts";
import { openService, type Service } from "../src/service/service.ts";
import { EdgeInFront, LOOPBACK } from "./edge-in-front.ts";
import { sendAlone } from "./fast-lane/memory-socket.ts";
import { InterceptedStore, type Interception } from "./intercepted-store.ts";
import { NO_OPERATION, observe, observeEvent, routeProblems } from "./observations.ts";
import { dataFolder } from "./services/data-folder.ts";
import { filledDatabase } from "./services/postgres.ts";
import { startThread } from "./threads/reused.ts";

export const stores = ["sqlite", "postgres"] as const;
export type StoreKind = (typeof stores)[number];

/** A master key of the vault, for services on PostgreSQL whose tests need one. */
export const VAULT_KEY = Buffer.alloc(32, 7).toString("base64");

/** 2026-01-15T12:00:00Z. */
const START = 1_768_478_400_000;
/** The interval at which a service reads changes. */
export const POLL_INTERVAL = 500;
/** A long time passes in steps of this length, except for its end: the service reads changes once in each step. */
const COARSE_STEP = 2_000;
/** The interval at which it reads them for edges. */
const EDGE_INTERVAL = 200;
const FINE_STEPS = 10_000;

export interface TestServerOptions {
  /** Default: the embedded database. */
  store?: StoreKind;
  /** Settings by name, as in the environment without the prefix. */
  settings?: Record<string, string>;
  /** Wraps every procedure of the embedded database. */
  watch?: Watch;
  /** Another server, whose database and clock this one shares. */
  beside?: TestServer;
  /** Whether the service is the only user of its database, and so has a filter of its keys. */
  alone?: boolean;
  /** The folder with the files of the dashboard. */
  dashboardFolder?: string;
  /** Whether its log has the level `debug`. */
  debug?: boolean;
  /** The interception of its store from the start. */
  interception?: Interception;
}

/** Returns a procedure that runs instead of the procedure of this name. */
export type Watch = (name: string, procedure: Procedure) => Procedure;

export interface CallOptions {
  /** The root key of the call; null: none; default: the administrator's. */
  as?: string | null;
  headers?: Record<string, string | undefined>;
  /** Sent instead of the body as JSON. */
  raw?: string | Buffer;
  /** The address of the peer. */
  from?: string;
}

export interface ErrorBody {
  title: string;
  detail: string;
  status: number;
  type: string;
  errors?: InputError[];
}

/** A reply that was checked against the declaration of its operation. */
export interface Reply {
  status: number;
  headers: Record<string, string>;
  /** The whole body. */
  // biome-ignore lint/suspicious/noExplicitAny: the content was checked by the schema of the operation.
  body: any;
  problem?: ProblemCode;
}

interface TestDatabase {
  settings: Record<string, string>;
  /** A connection beside those of the service, which runs any function. */
  direct: Store<typeof directProcedures>;
  remove(): Promise<void>;
}

/** The tables that `rows` and `writes` compare: all but `changes`. */
const comparedTables = [
  "workspaces",
  "root_keys",
  "apis",
  "identities",
  "balances",
  "budgets",
  "holds",
  "keys",
  "derived_keys",
  "key_migrations",
  "ratelimits",
  "ratelimit_namespaces",
  "ratelimit_overrides",
  "permissions",
  "plan_assignments",
  "plan_credits",
  "plan_grants",
  "plan_budgets",
  "plans",
  "plans_permissions",
  "plans_roles",
  "roles",
  "roles_permissions",
  "keys_permissions",
  "keys_roles",
  "portal_sessions",
  "audit_events",
  "audit_targets",
] as const satisfies readonly (keyof Schema)[];

const directProcedures = {
  reading: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
  writing: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
  // Tests insert thousands of rows with one statement.
  mayTakeLong: () => true,
};

const operationsByName = new Map<string, Operation>(
  [...operations, ...replicaOperations].flatMap((operation) => namesOf(operation).map((name) => [name, operation])),
);
const codesByType = new Map(Object.entries(problems).map(([code, { type }]) => [type as string, code as ProblemCode]));

let servers = 0;

/** The real service on a database of its own, with a simulated clock, and a way to call it. */
export class TestServer {
  readonly clock: SimulatedClock;
  /** The administrator's root key in the default workspace. */
  rootKey!: string;
  workspaceId!: string;
  store!: InterceptedStore;
  analytics!: InterceptedStore<AnalyticsProcedures>;
  service!: Service;
  /** What the service logged. */
  readonly logged: { level: string; fields: object; message: string }[] = [];
  readonly options: TestServerOptions;
  /** The open servers on this clock. */
  readonly #together: Set<TestServer>;
  #database!: TestDatabase;
  #countsWrites = false;
  /** With `LATCHKEY_TESTED_EDGE=on`: what answers verifications and limits. */
  #edge: Promise<EdgeInFront> | undefined;
  /** Whether something may have changed since the edge was last asked. */
  #hasChanged = false;
  #catchingUp: Promise<void> | undefined;

  constructor(options: TestServerOptions = {}) {
    this.options = options;
    this.clock = options.beside?.clock ?? new SimulatedClock(START);
    this.#together = options.beside ? options.beside.#together : new Set();
  }

  async open(): Promise<this> {
    const { beside, store = "sqlite", settings = {} } = this.options;
    this.#database = beside ? beside.#database : await openDatabase(store);
    const { LATCHKEY_FAST_LANE: FAST_LANE = "on" } = process.env;
    const TRUSTED_PROXIES = [settings.TRUSTED_PROXIES, hasEdges() && LOOPBACK].filter(Boolean).join(",");
    const given = { FAST_LANE, ...this.#database.settings, ...settings, ...(TRUSTED_PROXIES && { TRUSTED_PROXIES }) };
    const values = new Map(Object.entries(given));
    const [config, secrets] = [readConfig(values), readSecrets(values)];
    const record = (level: string) => (fields: object, message: string) =>
      void this.logged.push({ level, fields, message });
    const seed = ++servers;
    const dependencies = {
      clock: this.clock,
      random: seededRandom(seed + 1_000_000),
      log: {
        info: record("info"),
        warn: record("warn"),
        error: record("error"),
        ...(this.options.debug && { debug: record("debug") }),
      },
      seed,
      dashboardFolder: this.options.dashboardFolder,
    };
    const { watch, alone, interception } = this.options;
    this.service = await openService(config, secrets, dependencies, {
      openStore: async (_config, _secrets, given, observeCalls) => {
        const opened: AppStore = watch
          ? openWatchedStore(config, seed, watch)
          : await openStore(config, secrets, { ...given, startThread }, observeCalls);
        this.store = new InterceptedStore(opened);
        this.store.interception = interception;
        return alone ? Object.assign(this.store, { keyFilter: opened.keyFilter! }) : this.store;
      },
      openAnalyticsStore: async (_config, _secrets, clock, observeCalls) => {
        const opened = await openAnalyticsStore(config, secrets, clock, observeCalls, startThread);
        this.analytics = new InterceptedStore(opened);
        return this.analytics;
      },
      // Services that share a database in a test share its folder too.
      claimFolder: () => ({ holder: `node_${seed}`, formerHolders: [], release: () => {} }),
    });
    this.rootKey = beside?.rootKey ?? this.service.issued!.key;
    this.workspaceId = beside?.workspaceId ?? this.service.issued!.workspaceId;
    this.#together.add(this);
    return this;
  }

  async close(): Promise<void> {
    this.#together.delete(this);
    this.store.interception = undefined;
    this.analytics.interception = undefined;
    await (await this.#edge)?.close();
    await this.service.stop();
    // The database belongs to the first service, which may be closed before those beside it.
    if (this.options.beside) return;
    await this.#checkEvents();
    await this.#database.remove();
  }

  /** Every event that the service recorded has the schema of its type. */
  async #checkEvents(): Promise<void> {
    const events = await this.rowsOf("events");
    for (const { type, data } of events as EventRow[]) {
      eventTypes[type as EventType].data.parse(JSON.parse(data));
      observeEvent(type as EventType);
    }
  }

  /** Whether an edge answers verifications: a call that is under way during a change may still get the state before it. */
  get hasEdge(): boolean {
    return hasEdges();
  }

  /** The data folder of the service. */
  get dataDirectory(): string {
    return this.#database.settings.DATA_DIR!;
  }

  /** The output of `/metrics`. */
  async scrape(): Promise<string> {
    return (await inject(this.service.dispatch, { method: "GET", url: "/metrics" })).payload;
  }

  /** Calls an operation, and checks the reply against its declaration. */
  async call(name: string, body: unknown, options: CallOptions = {}): Promise<Reply> {
    const operation = operationsByName.get(name);
    assert(operation, `There is no operation ${name}.`);
    const { as = this.rootKey, headers = {}, raw = JSON.stringify(body), ...rest } = options;
    return this.#send(operation, `/v2/${name}`, "POST", {
      ...rest,
      raw,
      headers: {
        "content-type": "application/json",
        ...(as !== null && { authorization: `Bearer ${as}` }),
        ...headers,
      },
    });
  }

  /** Sends any request, without a root key or content type of its own. */
  request(method: string, path: string, options: Omit<CallOptions, "as"> = {}): Promise<Reply> {
    return this.#send(operationsByName.get(path.replace("/v2/", "").split("?")[0]!), path, method, options);
  }

  /** The `data` of a call that succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: the content was checked by the schema of the operation.
  async ok(name: string, body: unknown, options?: CallOptions): Promise<any> {
    const reply = await this.call(name, body, options);
    if (reply.status !== 200) assert.equal(reply.status, 200, this.#describeCall(name, body, reply));
    return reply.body.data;
  }

  /** The `error` of a call that fails with this problem. */
  async rejected(name: string, body: unknown, problem: ProblemCode, options?: CallOptions): Promise<ErrorBody> {
    const reply = await this.call(name, body, options);
    if (reply.problem !== problem)
      assert.equal(reply.problem, problem, this.#describeCall(name, options?.raw ?? body, reply));
    return reply.body.error;
  }

  /** The `data` of a verification. */
  verify(key: string, more: object = {}, options?: CallOptions) {
    return this.ok("keys.verifyKey", { key, ...more }, options);
  }

  async createApi(name = "payments"): Promise<string> {
    return (await this.ok("apis.createApi", { name })).apiId;
  }

  createKey(apiId: string, more: object = {}): Promise<{ keyId: string; key: string }> {
    return this.ok("keys.createKey", { apiId, ...more });
  }

  getKey(keyId: string) {
    return this.ok("keys.getKey", { keyId });
  }

  /** Creates a role with these permissions. */
  async createRole(name: string, ...permissions: string[]): Promise<void> {
    await this.ok("permissions.createRole", { name, permissions });
  }

  /** A new root key of the default workspace with exactly these grants. */
  async grant(...grants: string[]): Promise<IssuedRootKey> {
    const { workspaceId } = this;
    const act = { now: this.clock.now(), actor: "cli" };
    return (await this.store.transact("createRootKey", {
      ...act,
      workspaceId,
      name: "granted",
      grants,
    })) as IssuedRootKey;
  }

  /** A new workspace with its administrator. */
  workspace(name: string): Promise<IssuedRootKey> {
    return this.store.transact("createWorkspace", { now: this.clock.now(), actor: "cli", name });
  }

  /**
   * Changes the database in one transaction outside of the service, with a row in `changes` under `tags`; returns when
   * the service has read it.
   */
  async change<T>(tags: readonly string[], work: (sql: Sql) => Promise<T>): Promise<T> {
    const result = await this.#database.direct.transact("run", async (sql) => {
      const made = await work(sql);
      await insertChange(sql, tags, this.clock.now(), null);
      return made;
    });
    await this.pass(POLL_INTERVAL);
    return result as T;
  }

  /** Runs work while a program of an earlier release is connected to PostgreSQL. */
  besideEarlierRelease<T>(work: () => Promise<T>): Promise<T> {
    return this.change([], async ({ db }) => {
      await raw`set local application_name = 'latchkey-feed'`.execute(db);
      return work();
    });
  }

  /** Makes a change outside of the service, under `tags`, whose transaction stays open until `commit`. */
  async openTransaction(
    tags: readonly string[],
    work: (sql: Sql) => Promise<void>,
  ): Promise<{ commit(): Promise<void> }> {
    const done = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const committed = this.#database.direct.transact("run", async (sql) => {
      await work(sql)
        .then(() => insertChange(sql, tags, this.clock.now(), null))
        .then(() => done.resolve(), done.reject);
      await gate.promise;
    });
    await done.promise;
    return {
      async commit() {
        gate.resolve();
        await committed;
      },
    };
  }

  /** Advances the clock in steps, so that the service runs its periodic jobs. */
  async pass(length: number): Promise<void> {
    for (let left = length; left > 0; ) {
      const step = left > FINE_STEPS + COARSE_STEP ? COARSE_STEP : Math.min(left, POLL_INTERVAL);
      left -= step;
      await this.advance(step);
      await this.store.settled();
      await this.analytics.settled();
    }
  }

  /**
   * Advances the clock in one step while no call of the database is under way: one that began before, such as the reading
   * of changes that a notification starts, would have taken as long, and the database would count as unreachable.
   */
  async advance(length: number): Promise<void> {
    const stores = [...this.#together].map(({ store }) => store);
    do {
      for (const store of stores) await store.settled();
    } while (stores.some(({ callsUnderWay }) => callsUnderWay > 0));
    this.clock.advance(length);
  }

  /** The rows that contain a text, all by default, by table except for `changes`: to assert that nothing changed. */
  async rows(text = ""): Promise<Record<string, unknown[]>> {
    return (await this.#database.direct.read("run", async ({ db }) => {
      const all: Record<string, unknown[]> = {};
      for (const table of comparedTables) {
        const rows = await db.selectFrom(table).selectAll().execute();
        const texts = rows.map((row) => JSON.stringify(row)).filter((row) => row.includes(text));
        all[table] = texts.sort();
      }
      return all;
    })) as Record<string, unknown[]>;
  }

  /**
   * How many rows of each table were inserted, updated or deleted since the first call: to assert that nothing changed where
   * tables are long. Triggers count them.
   */
  async writes(): Promise<Record<string, number>> {
    if (!this.#countsWrites) await this.#countWrites();
    this.#countsWrites = true;
    return (await this.#database.direct.read("run", async ({ db }) => {
      const { rows } = await raw<{ name: string; written: number }>`select name, written from test_writes`.execute(db);
      return Object.fromEntries(rows.map(({ name, written }) => [name, Number(written)]));
    })) as Record<string, number>;
  }

  #countWrites(): Promise<void> {
    return this.#database.direct.transact("run", async ({ db, dialect }) => {
      await raw`create table test_writes (name text primary key, written bigint not null)`.execute(db);
      const isEmbedded = dialect.isEmbedded;
      if (!isEmbedded) {
        await raw`create function count_test_write() returns trigger language plpgsql as $$
          begin
            update test_writes set written = written + 1 where name = tg_argv[0];
            return null;
          end $$`.execute(db);
      }
      for (const table of comparedTables) {
        await raw`insert into test_writes values (${table}, 0)`.execute(db);
        for (const verb of ["insert", "update", "delete"]) {
          const trigger = raw`create trigger ${raw.ref(`test_${table}_${verb}`)} after ${raw.raw(verb)} on ${raw.ref(table)}`;
          if (isEmbedded) {
            const count = raw`update test_writes set written = written + 1 where name = ${raw.lit(table)}`;
            await raw`${trigger} begin ${count}; end`.execute(db);
          } else {
            await raw`${trigger} for each row execute function count_test_write(${raw.lit(table)})`.execute(db);
          }
        }
      }
    }) as Promise<void>;
  }

  /** The rows of one table. */
  async rowsOf(table: keyof Schema): Promise<unknown[]> {
    return (await this.#database.direct.read("run", ({ db }) =>
      db.selectFrom(table).selectAll().execute(),
    )) as unknown[];
  }

  /** The call, the reply, and the last log line if the service failed. */
  #describeCall(name: string, body: unknown, reply: Reply): string {
    const log = reply.status >= 500 ? ` ${JSON.stringify(this.logged.at(-1))}` : "";
    return `${name} ${JSON.stringify(body)?.slice(0, 300)}: ${JSON.stringify(reply.body).slice(0, 1_000)}${log}`;
  }

  async #sendToEdge(sent: Parameters<EdgeInFront["send"]>[0]) {
    this.#edge ??= EdgeInFront.open(this);
    const edge = await this.#edge;
    if (this.#hasChanged) {
      this.#hasChanged = false;
      // Home reads what changed.
      this.#catchingUp = this.pass(EDGE_INTERVAL).then(() => edge.outdate());
    }
    await this.#catchingUp;
    return edge.send(sent);
  }

  async #send(operation: Operation | undefined, path: string, method: string, options: CallOptions): Promise<Reply> {
    const { raw, from } = options;
    const headers = Object.fromEntries(
      Object.entries(options.headers ?? {}).filter(([, value]) => value !== undefined),
    );
    if (operation?.kind === "metered" && operation.declaration.bodyBytesMax === undefined && method === "POST") {
      // Through a connection, as every caller does, and so through the fast lane.
      const sent = { path, headers, body: raw ?? "", from: from ?? "127.0.0.1" };
      if (hasEdges()) {
        const { status, headers: fields, payload } = await this.#sendToEdge(sent);
        return examine(operation, path, status, fields, payload);
      }
      const { status, headers: fields, payload } = await sendAlone(this.service.accept, sent);
      return examine(operation, path, status, fields, payload);
    }
    this.#hasChanged = true;
    const response = await inject(this.service.dispatch, {
      method,
      url: path,
      headers,
      ...(raw !== undefined && { payload: raw }),
      ...(from !== undefined && { remoteAddress: from }),
    });
    return examine(operation, path, response.statusCode, response.headers as Record<string, string>, response.payload);
  }
}

/** Whether verifications and limits of the tests go through an edge. */
function hasEdges(): boolean {
  return process.env.LATCHKEY_TESTED_EDGE === "on";
}

/** Opens a server for one test; see `TestServer`. */
export function openTestServer(options?: TestServerOptions): Promise<TestServer> {
  return new TestServer(options).open();
}

/** Runs the tests that `define` defines on each database, with one server for each. */
export function describeOnStores(
  title: string,
  define: (server: TestServer, store: StoreKind) => void,
  settings: Record<string, string> = {},
): void {
  for (const store of stores) {
    describe(`${title} on ${store}`, () => {
      const server = new TestServer({ store, settings });
      before(() => server.open());
      after(() => server.close());
      define(server, store);
    });
  }
}

/**
 * Checks a reply against the rules of all replies and the declaration of its operation.
 *
 * @throws {AssertionError} on the first violation.
 */
export function examine(
  operation: Operation | undefined,
  path: string,
  status: number,
  headers: Record<string, string>,
  payload: string,
): Reply {
  const name = operation?.name ?? NO_OPERATION;
  const body = JSON.parse(payload);
  const at = `${name} answered ${status} ${payload.slice(0, 1_000)}`;
  assert.match(headers["x-request-id"] ?? "", /^req_[0-9A-Za-z]{9}$/, at);
  if (path.startsWith("/health/")) return { status, headers, body };

  const asProblem = status === 429 || (status >= 400 && name === "identities.deleteIdentity");
  assert.equal(headers["content-type"], asProblem ? "application/problem+json" : "application/json", at);
  assert.deepEqual(body.meta, { requestId: headers["x-request-id"] }, at);
  if (status === 200) {
    examineSuccess(operation, path, body, at);
    observe(name, "200");
    return { status, headers, body };
  }

  assert.deepEqual(Object.keys(body).sort(), ["error", "meta"], at);
  const problem = codesByType.get(body.error.type.slice(body.error.type.indexOf("/errors/") + "/errors/".length));
  assert(problem, `There is no such problem: ${at}`);
  const mayAnswer = [...routeProblems, ...(operation ? problemsOf(operation) : commonProblems)];
  assert(mayAnswer.includes(problem), `${name} does not declare ${problem}: ${at}`);
  examineError(problem, body.error, at);
  assert.equal(body.error.status, status, at);
  if (status === 401) assert.equal(headers["www-authenticate"], "Bearer", at);
  if (status === 405) assert(headers.allow, at);
  if (status === 429 || status === 503) assert.match(headers["retry-after"] ?? "", /^\d+$/, at);
  observe(name, problem);
  return { status, headers, body, problem };
}

function examineSuccess(
  operation: Operation | undefined,
  path: string,
  body: { data: unknown; pagination?: unknown },
  at: string,
): void {
  if (!operation) return;
  const paged = operation.kind === "query" && operation.paged;
  assert.deepEqual(Object.keys(body).sort(), paged ? ["data", "meta", "pagination"] : ["data", "meta"], at);
  const data = paged && operation.listName !== undefined && path !== pathOf(operation.name) ? listed() : body.data;
  const parsed = operation.declaration.output.safeParse(data);
  assert(parsed.success, `${at}\n${parsed.error}`);
  // A schema that transforms the output would hide the difference.
  assert.deepEqual(parsed.data, data, at);
  // Old ones may be deleted before the end.
  if (operation.name === "events.listEvents") for (const { type } of data as { type: EventType }[]) observeEvent(type);
  if (!paged) return;
  const { hasMore, cursor, ...rest } = body.pagination as { hasMore: boolean; cursor?: string };
  assert.deepEqual(rest, {}, at);
  assert.equal(typeof hasMore, "boolean", at);
  assert.equal(typeof cursor, hasMore ? "string" : "undefined", at);

  /** The bare list as the property that the operation's own name returns. */
  function listed(): object {
    assert(Array.isArray(body.data), at);
    return { [(operation as Query).listName!]: body.data };
  }
}

function examineError(problem: ProblemCode, error: ErrorBody, at: string): void {
  const { status, title } = problems[problem];
  const { detail, type, errors, ...rest } = error;
  assert.deepEqual(rest, { status, title }, at);
  assert(typeof type === "string" && typeof detail === "string" && detail.length > 0, at);
  if (status !== 400 && status !== 408 && status !== 413) {
    assert.equal(errors, undefined, at);
    return;
  }
  assert(Array.isArray(errors), at);
  if (detail.includes("failed to validate schema")) assert(errors.length > 0, at);
  for (const { location, message, fix, ...unknown } of errors) {
    assert(location.length > 0 && message.length > 0 && fix !== "", at);
    assert.deepEqual(unknown, {}, at);
  }
}

/** The embedded database on this thread, with every procedure wrapped. */
function openWatchedStore(config: Config, seed: number, watch: Watch): Store<AppProcedures> {
  const procedures = openProcedures({
    seed,
    vault: { kind: "folder", folder: config.dataDirectory },
    limits: limitsOf(config),
  });
  const watched = (table: object) =>
    Object.fromEntries(Object.entries(table).map(([name, procedure]) => [name, watch(name, procedure)]));
  const { reading, writing } = procedures;
  return openSqliteStoreHere(join(config.dataDirectory, "latchkey.db"), {
    reading: watched(reading),
    writing: watched(writing),
  } as AppProcedures);
}

async function openDatabase(store: StoreKind): Promise<TestDatabase> {
  const folder = mkdtempSync(join(dataFolder(), "latchkey-test-"));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  if (store === "sqlite") {
    const file = join(folder, "latchkey.db");
    const direct = openSqliteStoreHere(file, directProcedures);
    return {
      settings: { DATA_DIR: folder },
      direct,
      async remove() {
        await direct.close();
        removeFolder();
      },
    };
  }
  const { url, drop } = await filledDatabase(createSchema);
  const direct = await openDirectly(url);
  return {
    settings: { DATA_DIR: folder, DATABASE_URL: url },
    direct,
    async remove() {
      await direct.close();
      await drop();
      removeFolder();
    },
  };
}

/** The schema that a service creates on an empty database. */
async function createSchema(url: string): Promise<void> {
  const direct = await openDirectly(url);
  for (const plan of [mainPlan, analyticsPlan]) await direct.transact("run", (sql) => migrate(sql, plan));
  await direct.close();
}

function openDirectly(url: string): Promise<Store<typeof directProcedures>> {
  const options = { url, clock: new SimulatedClock(START), connectionsMax: 2, idleInTransactionTimeout: 60_000 };
  return openPostgresStore(options, directProcedures);
}
