import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { sharedService } from "./ask.ts";
import { dataFolder } from "./data-folder.ts";
import {
  findFolder,
  installPackage,
  makeDirectory,
  type Service,
  startService,
  unprivilegedAccount,
} from "./service.ts";

/** A database for one test or one test file. `drop` also ends its open connections. */
export interface FreshDatabase {
  url: string;
  drop(): Promise<void>;
}

/** The setting of the server's address, and of the server of the run. */
const CHOSEN = "LATCHKEY_TEST_POSTGRES_URL";
/** The database that `filledDatabase` copies. */
const FILLED = "latchkey_filled";
/** An arbitrary number that nothing else on the server uses as a lock. */
const FILLED_LOCK = 7_262_837_123_999;
/** The first version, as PostgreSQL numbers them, that copies a database through its log unless told otherwise. */
const LOGGED_COPIES = 150_000;
let copied: Promise<string> | undefined;

/** Creates an empty database, UTF-8, on the server of this test run. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const server = await sharedService("postgres", CHOSEN);
  // template0 has no connections, so concurrent creations do not fail.
  return createDatabase(server, "template0 encoding 'UTF8'");
}

/**
 * Creates a database as `fill` fills an empty one. `fill` is the same for all callers: it runs once per server, and the
 * database is a copy. On a server that the run has not started, which keeps nothing of it, `fill` runs for each database.
 */
export async function filledDatabase(fill: (url: string) => Promise<void>): Promise<FreshDatabase> {
  if (process.env[CHOSEN]) {
    const database = await freshDatabase();
    await fill(database.url);
    return database;
  }
  const server = await sharedService("postgres", CHOSEN);
  copied ??= ensureFilled(server, fill);
  return createDatabase(server, await copied);
}

async function createDatabase(server: string, template: string): Promise<FreshDatabase> {
  const name = `latchkey_test_${randomUUID().replaceAll("-", "")}`;
  await execute(server, `create database ${name} template ${template}`);
  return { url: urlOf(server, name), drop: () => execute(server, `drop database if exists ${name} with (force)`) };
}

/** Fills the database that others are copied from, and returns the options of a copy. */
async function ensureFilled(server: string, fill: (url: string) => Promise<void>): Promise<string> {
  const client = new Client({ connectionString: server });
  await client.connect();
  try {
    // Another test file may be filling it.
    await client.query(`select pg_advisory_lock(${FILLED_LOCK})`);
    const { rows } = await client.query(
      `select current_setting('server_version_num')::int version,
        exists (select from pg_database where datname = '${FILLED}') as "isFilled"`,
    );
    const [{ version, isFilled }] = rows;
    // A copy of the files is cheaper than one through the log where a sync takes no time.
    const copy = version >= LOGGED_COPIES ? `${FILLED} strategy file_copy` : FILLED;
    if (isFilled) return copy;
    const filling = `${FILLED}_filling`;
    await client.query(`drop database if exists ${filling} with (force)`);
    await client.query(`create database ${filling} template template0 encoding 'UTF8'`);
    await fill(urlOf(server, filling));
    await client.query(`alter database ${filling} rename to ${FILLED}`);
    return copy;
  } finally {
    await client.end();
  }
}

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = database;
  return url.href;
}

/**
 * Starts a PostgreSQL for one test run or one test, with the programs of this machine, or as root on Debian with newly
 * installed ones. `special` are additional settings of its configuration.
 */
export async function startPostgres(special: Readonly<Record<string, string>> = {}): Promise<Service> {
  const folder = findPostgres() ?? (installPackage("postgresql") ? findPostgres() : undefined);
  if (!folder) {
    throw new Error(
      "The tests need PostgreSQL: install it (Debian and Ubuntu: `apt-get install postgresql`, macOS: `brew install postgresql`), or set LATCHKEY_TEST_POSTGRES_URL to a server on which they may create databases.",
    );
  }

  const account = unprivilegedAccount("postgres");
  return startService(
    (port) => {
      const directory = makeDirectory("postgres", account, dataFolder());
      const data = join(directory, "data");
      try {
        const args = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
        execFileSync(join(folder, "initdb"), args, { cwd: directory, stdio: "pipe", ...account });
      } catch (cause) {
        rmSync(directory, { recursive: true, force: true });
        throw cause;
      }
      const settings = [...serverSettings(port), ...Object.entries(special).map(([name, value]) => `${name}=${value}`)];
      return {
        program: join(folder, "postgres"),
        args: ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
        directory,
        account,
        // Immediate shutdown: the data is deleted, so a checkpoint is useless.
        stopSignal: "SIGQUIT",
      };
    },
    /database system is ready to accept connections/,
    (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  );
}

/**
 * Starts a hot standby of a server from `startPostgres`. Its application name is `standby`. It replicates from
 * `source`, which may be the address of a proxy.
 */
export async function startStandby(primary: string, source = primary): Promise<Service> {
  const folder = findPostgres(["initdb", "postgres", "pg_basebackup"])!;
  const account = unprivilegedAccount("postgres");
  return startService(
    (port) => {
      const directory = makeDirectory("standby", account, dataFolder());
      const data = join(directory, "data");
      const args = ["-D", data, "-d", primary, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"];
      const settings = [...serverSettings(port), `primary_conninfo=${source}?application_name=standby`];
      execFileSync(join(folder, "pg_basebackup"), args, { cwd: directory, stdio: "pipe", ...account });
      return {
        program: join(folder, "postgres"),
        args: ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
        directory,
        account,
        stopSignal: "SIGQUIT",
      };
    },
    /ready to accept read-only connections/,
    (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  );
}

function serverSettings(port: number): string[] {
  // Loopback only, and no socket in a shared folder. fsync stays on, so that the tests see what a user's server does. It costs little on data in memory.
  return [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
}

/** Runs a program of PostgreSQL, such as `pg_dump`, and returns its output. */
export function runPostgresProgram(name: string, args: readonly string[]): Buffer {
  const folder = findPostgres([name]);
  if (!folder) throw new Error(`This test needs ${name}, which is part of PostgreSQL.`);
  return execFileSync(join(folder, name), args, { stdio: ["ignore", "pipe", "pipe"], maxBuffer: 2 ** 28 });
}

/** The folder with these programs of PostgreSQL; undefined without one. */
export function findPostgres(programs = ["initdb", "postgres"]): string | undefined {
  return findFolder(programs, [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
  ]);
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
