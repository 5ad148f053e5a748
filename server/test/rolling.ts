/**
 * `npm run test:rolling`: the previous release and this one on one PostgreSQL and one Redis, under load: the upgrade of
 * two nodes one after the other, with a rollback after the first and after the second. Then edges of each of two releases
 * before a service of the other one. `npm run test:rolling -- v0.1.0` names the revision that is the previous release; so does
 * LATCHKEY_TEST_PREVIOUS.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { monthlyTableNames } from "../src/platform/store/monthly-tables.ts";
import { eventually, type Server, start } from "./process.ts";
import { attachEdge, attachToNone } from "./rolling-edges.ts";
import { RollingLoad } from "./rolling-load.ts";
import { startPostgres } from "./services/postgres.ts";
import { startRedis } from "./services/redis.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** The previous release until there is a tag: the last revision of schema 15. */
const FIRST_REVISION = "68b55f00a385b98dc12d511f90a1a20164eb1a54";

/**
 * The earlier release of edges while the previous release has none: the first revision whose edges lease limits. Its service
 * reads fewer questions than an edge asks today: it knows neither namespaces nor the root key of a caller.
 */
const EDGES_REVISION = "9ee313119c28744823835fe0ced645f22178798e";

/** The first schema of which nodes keep serving while the next release migrates: decisions/030. */
const FIRST_ROLLING_SCHEMA = 15;

/** The schema of the refills that releases below it misread. */
const CALENDARS_SCHEMA = 34;
const WEEKLY = { remaining: 1, refill: { interval: "weekly", amount: 1 } };

/** Calls that each pair of nodes answers before the next step. */
const CALLS_PER_PHASE = 200;

const given = process.argv[2] ?? process.env.LATCHKEY_TEST_PREVIOUS;
if (given === undefined && !hasHistory()) {
  console.log(
    "test:rolling: SKIPPED. This folder has no git history, or a shallow one, so there is no previous release.",
  );
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), "latchkey-rolling-"));
const [database, redis] = [await startPostgres(), await startRedis()];
try {
  const revision = findRevision();
  requireRolling(revision);
  const old = checkOut(revision);
  console.log(`test:rolling: ${describe(revision)} beside the working tree`);
  await roll(old, schemaOf(revision) < CALENDARS_SCHEMA);
  await replaceEdges(revision, old);
  console.log("test:rolling: passed");
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await Promise.all([database.stop(), redis.stop()]);
  rmSync(folder, { recursive: true, force: true });
  // After a failure, nodes still run. Their end is part of the end of this process.
  process.exit();
}

async function roll(old: string, misreadsRefills: boolean): Promise<void> {
  const launch = (node: "a" | "b", main?: string): Promise<Server> =>
    start({
      directory: folder,
      ...(main !== undefined && { main }),
      settings: {
        DATABASE_URL: database.url,
        REDIS_URL: redis.url,
        DATA_DIR: join(folder, `data-${node}`),
        DRAIN: "300ms",
      },
    });
  const load = new RollingLoad();
  /** Changes the nodes under load, and lets them serve. */
  const phase = async (what: string, change?: () => Promise<void>) => {
    const before = load.calls;
    await change?.();
    const changed = load.calls;
    await load.answer(CALLS_PER_PHASE);
    console.log(`  ${what}: ${changed - before} calls during the change, ${load.calls - changed} after it`);
  };
  let a = await launch("a", old);
  let b = await launch("b", old);
  await load.open(a);
  load.nodes = [a, b];
  load.start();
  /** Replaces a node while the other serves. */
  const replace = async (node: "a" | "b", main: string | undefined) => {
    const former = node === "a" ? a : b;
    const other = node === "a" ? b : a;
    load.nodes = [other];
    const { code } = await former.kill("SIGTERM");
    assert.equal(code, 0, `node ${node} did not stop in order:\n${former.output}`);
    const next = await launch(node, main);
    if (node === "a") a = next;
    else b = next;
    load.nodes = [a, b];
  };
  await phase("old and old");
  await phase("new and old", () => replace("a", undefined));
  await phase("old and old, after the rollback of the first node", () => replace("a", old));
  await phase("new and old, again", () => replace("a", undefined));
  const { apiId } = await a.ok("apis.createApi", { name: "calendars" });
  if (misreadsRefills) {
    const { status, body } = await a.call("keys.createKey", { apiId, credits: WEEKLY });
    assert.equal(status, 412, JSON.stringify(body));
  }
  await phase("new and new", () => replace("b", undefined));
  await phase("new and new, while tables are divided by month", divided);
  await phase("new and old, after the rollback of the second node", () => replace("b", old));
  await phase("old and old, after both rollbacks", () => replace("a", old));
  await load.stop();
  await load.check();
  await Promise.all([a.kill("SIGTERM"), b.kill("SIGTERM")]);
  if (!misreadsRefills) return;

  a = await launch("a", undefined);
  await a.ok("keys.createKey", { apiId, credits: WEEKLY });
  await assert.rejects(launch("b", old), /newer/);
  await a.kill("SIGTERM");
  console.log("  a refill that the previous release misreads: refused beside it, and keeps it from starting");
}

/** Edges of one release before a service of another one. */
async function replaceEdges(previous: string, main: string): Promise<void> {
  let [revision, earlier] = [previous, main];
  if (!has(revision, "server/src/edge")) {
    const home = await start({ directory: folder, main, settings: { DATA_DIR: join(folder, "without-edges") } });
    console.log(`  ${await attachToNone(folder, home)}`);
    await home.kill("SIGTERM");
    revision = resolveRevision(EDGES_REVISION);
    earlier = checkOut(revision);
  }
  console.log(`test:rolling: edges of ${describe(revision)} and of the working tree`);
  const lease = has(revision, "engine/src/replica/leases.ts");
  const lines = await Promise.all([
    attachEdge(folder, { name: "this edge before an earlier service", home: earlier, edge: undefined, lease }),
    attachEdge(folder, { name: "an earlier edge before this service", home: undefined, edge: earlier, lease }),
  ]);
  for (const line of lines) console.log(`  ${line}`);
}

/** Whether a revision has a file or a folder. */
function has(revision: string, path: string): boolean {
  return git("ls-tree", "--name-only", revision, path).trim() !== "";
}

/** Waits until the service has divided every table that had rows. */
async function divided(): Promise<void> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const whole = "select 1 from pg_class where oid = any (select to_regclass(unnest($1::text[]))) and relkind = 'r'";
  try {
    await eventually("tables by month", async () => (await client.query(whole, [monthlyTableNames])).rows.length === 0);
  } finally {
    await client.end();
  }
}

function hasHistory(): boolean {
  return existsSync(join(repository, ".git")) && git("rev-parse", "--is-shallow-repository").trim() === "false";
}

/** The revision given, or the newest tag before this revision, or the last one before there were tags. */
function findRevision(): string {
  return resolveRevision(given ?? newestTag() ?? FIRST_REVISION);
}

function resolveRevision(wanted: string): string {
  try {
    return git("rev-parse", "--verify", "--quiet", `${wanted}^{commit}`).trim();
  } catch {
    throw new Error(
      `The revision ${wanted} is not in this clone, so the previous release cannot run. Fetch the whole history ` +
        "(`git fetch --unshallow --tags`), or name another revision: `npm run test:rolling -- REVISION`.",
    );
  }
}

/** @throws if nodes of the revision stop when a newer release has migrated the database. */
function requireRolling(revision: string): void {
  const schema = schemaOf(revision);
  if (schema >= FIRST_ROLLING_SCHEMA) return;
  throw new Error(
    `${describe(revision)} is of schema ${schema}. Rolling upgrades are possible from schema ${FIRST_ROLLING_SCHEMA} on: ` +
      "an older node rejects a database that a newer release has migrated.",
  );
}

/** The number of the last migration of a revision. */
function schemaOf(revision: string): number {
  // Releases before 0.2 have them outside of the platform.
  const places = ["server/src/platform/store/migrations/", "server/src/store/migrations/"];
  const files = git("ls-tree", "--name-only", revision, ...places);
  return Math.max(0, ...[...files.matchAll(/\/(\d{3})-/g)].map(([, number]) => Number(number)));
}

function newestTag(): string | undefined {
  try {
    // A release is tested before its tag is the previous one.
    return git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^").trim();
  } catch {
    return undefined;
  }
}

function describe(revision: string): string {
  return git("log", "-1", "--format=%h (%cs, %s)", revision).trim();
}

/** Extracts a revision with its packages; returns the path of its program. */
function checkOut(revision: string): string {
  const target = join(folder, revision);
  mkdirSync(target);
  const archive = `${target}.tar`;
  assert.equal(git("archive", "--format=tar", "--output", archive, revision), "");
  execFileSync("tar", ["-xf", archive, "-C", target]);
  if (hasPackagesOf(target)) symlinkSync(join(repository, "node_modules"), join(target, "node_modules"));
  else {
    console.log("test:rolling: this revision has other packages: npm ci");
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: target, stdio: "inherit" });
  }
  return join(target, "server/src/main.ts");
}

/** Whether every package of another revision is installed here in the same version. */
function hasPackagesOf(other: string): boolean {
  const [ours, theirs] = [repository, other].map(
    (root) => JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages as Record<string, Package>,
  );
  return Object.entries(theirs!).every(
    ([path, { version, link }]) => !path.startsWith("node_modules/") || link || ours![path]?.version === version,
  );
}

interface Package {
  version?: string;
  link?: boolean;
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: repository, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
