import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { sharedService } from "./ask.ts";
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

/** Creates an empty database, UTF-8, on the server of this test run. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const server = await sharedService("postgres", "LATCHKEY_TEST_POSTGRES_URL");
  const name = `latchkey_test_${randomUUID().replaceAll("-", "")}`;
  // template0 has no connections, so concurrent creations do not fail.
  await execute(server, `create database ${name} template template0 encoding 'UTF8'`);
  const url = new URL(server);
  url.pathname = name;
  return { url: url.href, drop: () => execute(server, `drop database if exists ${name} with (force)`) };
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
      const directory = makeDirectory("postgres", account);
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
      const directory = makeDirectory("standby", account);
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
  // Loopback only, and no socket in a shared folder. fsync stays on, so that the tests see what a user's server does.
  return [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
}

/** Runs a program of PostgreSQL, such as `pg_dump`, and returns its output. */
export function runPostgresProgram(name: string, args: readonly string[]): Buffer {
  const folder = findPostgres([name]);
  if (!folder) throw new Error(`This test needs ${name}, which is part of PostgreSQL.`);
  return execFileSync(join(folder, name), args, { stdio: ["ignore", "pipe", "pipe"], maxBuffer: 2 ** 28 });
}

function findPostgres(programs = ["initdb", "postgres"]): string | undefined {
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
