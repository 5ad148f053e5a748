/** A role of PostgreSQL for the service alone, made and restored as the documents say; and roles that cannot be used. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { codeBlocks } from "./code-blocks.ts";
import { repository } from "./deploy/tools.ts";
import { makeFolder, run, start } from "./process.ts";
import { findPostgres, startPostgres } from "./services/postgres.ts";
import type { Service } from "./services/service.ts";

const VAULT_KEY = Buffer.alloc(32, 7).toString("base64");

describe("the role of the service on PostgreSQL", () => {
  let postgres: Service;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres?.stop());

  const urlOf = (role: string, database: string) => {
    const url = new URL(postgres.url);
    return Object.assign(url, { username: role, pathname: database }).href;
  };

  /** What an administrator types on the machine of the database. */
  function type(directory: string, commands: string, environment: Record<string, string> = {}): void {
    const { hostname, port, username } = new URL(postgres.url);
    const path = `${findPostgres(["createdb", "pg_dump", "pg_restore", "psql"])}${delimiter}${process.env.PATH}`;
    const env = { ...process.env, ...environment, PATH: path, PGHOST: hostname, PGPORT: port, PGUSER: username };
    execFileSync("bash", ["-euc", commands], { cwd: directory, env, stdio: "pipe" });
  }

  /** The commands of a page that begin with this one. */
  function documented(page: string, beginning: string): string {
    const blocks = codeBlocks(readFileSync(join(repository, "docs", page), "utf8"));
    const block = blocks.find(({ language, code }) => language === "sh" && code.startsWith(beginning));
    assert(block, `docs/${page} has no block that begins with ${beginning}`);
    return block.code;
  }

  const verified = (t: TestContext, databaseUrl: string) =>
    run(["verify-store"], { directory: makeFolder(t), settings: { DATABASE_URL: databaseUrl, VAULT_KEY } });

  /** Expects each command that opens the database to end with one line. */
  async function refuses(t: TestContext, databaseUrl: string, reason: RegExp): Promise<void> {
    for (const args of [
      ["serve", "--port", "0"],
      ["migrate", "status"],
      ["verify-store"],
      ["migrate-store", "--undo"],
    ]) {
      const ended = await run(args, { directory: makeFolder(t), settings: { DATABASE_URL: databaseUrl, VAULT_KEY } });
      assert.equal(ended.code, 1, args.join(" "));
      assert.match(ended.stderr, reason, args.join(" "));
      assert.match(ended.stderr, /^latchkey: [^\n]*\n$/, args.join(" "));
    }
  }

  it("owns a database that is made, dumped and restored as the documents say", async (t) => {
    const directory = makeFolder(t);
    type(directory, documented("postgresql.md", "createuser").replace("--pwprompt ", ""));
    const settings = { DATABASE_URL: urlOf("latchkey", "latchkey"), VAULT_KEY };
    const server = await start({ directory, settings });
    const { apiId } = await server.ok("apis.createApi", { name: "documents" });
    const { key, keyId } = await server.ok("keys.createKey", { apiId, recoverable: true, credits: { remaining: 9 } });

    const backup = documented("backup.md", "pg_dump");
    type(directory, backup, { LATCHKEY_DATABASE_URL: settings.DATABASE_URL });
    // Without an address, pg_dump would dump the database of the administrator.
    const empty = makeFolder(t);
    const [dump] = backup.split("\n");
    assert.throws(
      () => type(empty, dump!, { LATCHKEY_DATABASE_URL: "" }),
      /LATCHKEY_DATABASE_URL: parameter null or not set/,
    );
    await server.kill("SIGTERM");

    const url = urlOf("latchkey", "restored");
    const { code, output } = await verified(t, url);
    assert.equal(code, 0, output);
    const copy = await start({ directory: makeFolder(t), settings: { ...settings, DATABASE_URL: url } });
    assert.equal((await copy.ok("keys.verifyKey", { key })).credits, 8);
    assert.equal((await copy.ok("keys.getKey", { keyId, decrypt: true })).plaintext, key);
    await copy.ok("keys.createKey", { apiId });
    await copy.kill("SIGTERM");
  });

  it("is told that tables belong to another role, as after a restore by an administrator", async (t) => {
    const directory = makeFolder(t);
    type(directory, "createdb others && createuser stranger");
    const server = await start({ directory, settings: { DATABASE_URL: urlOf("postgres", "others") } });
    await server.kill("SIGTERM");
    await refuses(
      t,
      urlOf("stranger", "others"),
      /permission denied for table [^\n]*pg_restore --no-owner --role=ROLE/,
    );
  });

  it("is told that it may not create tables", async (t) => {
    type(
      makeFolder(t),
      "createdb closed && createuser guest && psql -qd closed -c 'revoke create on schema public from public'",
    );
    const url = urlOf("guest", "closed");
    const settings = { DATABASE_URL: url, VAULT_KEY };
    const ended = await run(["serve", "--port", "0"], { directory: makeFolder(t), settings });
    assert.equal(ended.code, 1);
    assert.match(
      ended.stderr,
      /^latchkey: [^\n]*permission denied for schema public[^\n]*createdb --owner=ROLE[^\n]*\n$/,
    );

    const directory = makeFolder(t);
    const source = await start({ directory });
    const moved = await run(["migrate-store", "--to", url], {
      directory,
      settings: { DATA_DIR: join(directory, "data") },
    });
    await source.kill("SIGTERM");
    assert.match(
      moved.stderr,
      /^latchkey: postgres:[^ \n]*\/closed: [^\n]*permission denied for schema public[^\n]*\n$/,
    );
  });

  it("is told that another program has tables of the same name", async (t) => {
    type(makeFolder(t), "createdb shared && psql -qd shared -c 'create table keys (id int)'");
    const settings = { DATABASE_URL: urlOf("postgres", "shared"), VAULT_KEY };
    const ended = await run(["serve", "--port", "0"], { directory: makeFolder(t), settings });
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, /^latchkey: [^\n]*"keys" already exists[^\n]*one of its own[^\n]*\n$/);
  });
});
