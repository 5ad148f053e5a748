/**
 * Secrets are written nowhere. The test sends recognisable secrets through the service in every way that a careless
 * caller might, then searches for them in all that the service wrote: answers, logs, the data folder.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { Client } from "pg";
import { makeFolder, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

/** The plaintext of LATCHKEY_ROOT_KEY. */
const ROOT_KEY = "lk_root_CANARYq8Zr2Wm5Tx9Kd4Vb7N";
const PREFIX = "canary";
/** `canary_` and the 4 characters that stay visible. */
const SHOWN = 11;
/** A match of this many characters is no coincidence. */
const PIECE = 8;

/** A secret and its encoded forms. */
class Canary {
  readonly name: string;
  readonly secret: string;

  constructor(name: string, secret: string) {
    this.name = name;
    this.secret = secret;
  }

  /** Every part of the secret that must not appear, in plain text and encoded. Its visible start is permitted. */
  get forms(): Buffer[] {
    const hidden = this.secret.slice(SHOWN);
    const pieces = Array.from({ length: hidden.length - PIECE + 1 }, (_, at) => hidden.slice(at, at + PIECE));
    const bytes = Buffer.from(this.secret);
    // The last characters of base64 depend on the following bytes.
    const encoded = [bytes.toString("hex"), bytes.toString("base64").slice(0, -4)];
    return [...pieces, ...encoded].map((text) => Buffer.from(text));
  }

  /** As stored: only the database may contain it. */
  get hashes(): Buffer[] {
    const digest = createHash("sha256").update(this.secret).digest();
    return (["base64url", "base64", "hex"] as const).map((encoding) => Buffer.from(digest.toString(encoding)));
  }
}

interface Probe {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Everything that a caller may do wrong with a secret. */
function misuses(secret: string, apiId: string): Probe[] {
  const authorization = `Bearer ${ROOT_KEY}`;
  const json = { "content-type": "application/json", authorization };
  const verify = "/v2/keys.verifyKey";
  const post = (path: string, body: unknown, headers: Record<string, string> = json): Probe => ({
    path,
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const bodies = [
    `{"key":"${secret}`,
    `{"key":"${secret}"`,
    `{"key":${secret}}`,
    `{${secret}`,
    secret,
    `"${secret}"`,
    `["${secret}"]`,
    `{"key":"${secret}",}`,
    `{'key':'${secret}'}`,
    `key=${secret}`,
    `\u0000${secret}`,
    `{"key":"${secret}\n"}`,
    { kye: secret },
    { key: [secret] },
    { key: { secret } },
    { key: `${secret}\0` },
    { key: `${secret}\ud800` },
    { key: secret.repeat(20) },
    { key: secret, apiId: `${secret}!` },
    { key: secret, apiId: secret },
    { key: secret, tags: secret },
    { key: secret, tags: [secret.repeat(9)] },
    { key: secret, clientIp: secret },
    { key: secret, permissions: `${secret} AND` },
    { key: secret, permissions: `(${secret}` },
    { key: secret, permissions: `${secret} ${secret}` },
    { key: secret, permissions: `${secret}, x` },
    { key: secret, permissions: secret },
    { keyId: secret },
    { keyId: `${secret}!` },
    { name: { secret } },
    { apiId: secret },
    { apiId: `${secret}!` },
    { apiId, meta: secret },
    { apiId, prefix: secret },
    { apiId, roles: secret },
    { apiId, ratelimits: [{ name: "a", limit: secret, duration: secret }] },
    { apiId, credits: { remaining: secret } },
    { apiId, expires: secret },
    { apiId, enabled: secret },
    { apiId, cursor: secret },
    { apiId, externalId: `${secret}!` },
    { apiId, permissions: [`${secret}!`] },
  ];
  const operations = [verify, "/v2/keys.createKey", "/v2/keys.getKey", "/v2/keys.updateKey", "/v2/keys.deleteKey"];
  operations.push(
    "/v2/keys.whoami",
    "/v2/apis.createApi",
    "/v2/apis.getApi",
    "/v2/apis.listKeys",
    "/v2/apis.deleteApi",
  );
  return [
    ...operations.flatMap((operation) => bodies.map((body) => post(operation, body))),
    ...[verify, "/v2/keys.whoami"].flatMap((operation) => [
      post(operation, { key: secret }, { "content-type": "application/json" }),
      post(operation, { key: secret }, { authorization }),
      post(operation, { key: secret }, { "content-type": `text/${secret}`, authorization }),
      post(operation, { key: secret }, { "content-type": `application/json; charset=${secret}`, authorization }),
      post(operation, { key: secret }, { "content-type": secret, authorization }),
      post(operation, { key: secret }, { ...json, authorization: secret }),
      post(operation, { key: secret }, { ...json, authorization: `Basic ${secret}` }),
      post(operation, { key: secret }, { ...json, authorization: `Bearer ${secret}x` }),
      post(operation, { key: secret }, { ...json, authorization: `Bearer  ${secret} ${secret}` }),
      post(operation, { key: secret }, { ...json, authorization: `bearer ${secret}` }),
      post(operation, { key: secret }, { ...json, cookie: secret, "x-request-id": secret, "x-forwarded-for": secret }),
      post(operation, { key: secret, x: " ".repeat(11_000_000) }),
      post(operation, { key: secret, x: " ".repeat(70_000) }),
      post(`${operation}?key=${secret}`, { key: secret }),
      post(`${operation}?key=${secret}`, `{"key":${secret}`),
      post(`${operation}/${secret}`, {}),
    ]),
    { path: `/${secret}` },
    { method: "GET", path: `/v2/keys.verifyKey?key=${secret}` },
    { method: "GET", path: `/v2/${secret}` },
    { method: "GET", path: `/v2/%zz${secret}` },
    { method: "DELETE", path: `/v2/keys.deleteKey/${secret}` },
    { method: "PUT", path: "/v2/keys.verifyKey", headers: json, body: secret },
    { method: "GET", path: `/health/ready?key=${secret}`, headers: { authorization: `Bearer ${secret}` } },
    { method: "GET", path: `/v2/liveness?${secret}` },
  ];
}

/** Invalid HTTP. */
function invalidRequests(secret: string): string[] {
  return [
    `${secret}\r\n\r\n`,
    `GET /${secret}\r\n\r\n`,
    `POST /v2/keys.verifyKey HTTP/1.1\r\n${secret}\r\n\r\n`,
    `POST /v2/keys.verifyKey HTTP/9.9\r\nAuthorization: ${secret}\r\n\r\n`,
    `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: ${secret}\r\n\r\n`,
    `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${secret}\r\n`,
    `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nX-Key: ${`${secret} `.repeat(1_000)}\r\n\r\n`,
  ];
}

describe("a secret", () => {
  it("appears nowhere on sqlite", async (t) => {
    const directory = makeFolder(t);
    const server = await serve(directory, {});
    const broken = () => {
      const database = new DatabaseSync(join(directory, "data", "latchkey.db"));
      database.exec("pragma foreign_keys = off; drop table ratelimits; drop table audit_events");
      database.close();
    };
    await misuseSecrets(server, directory, broken);
  });

  it("appears nowhere on postgres", async (t) => {
    const database = await freshDatabase();
    const directory = makeFolder(t);
    const server = await serve(directory, { DATABASE_URL: database.url });
    const client = new Client({ connectionString: database.url });
    await client.connect();
    t.after(async () => {
      await client.end();
      await database.drop();
    });
    await misuseSecrets(server, directory, async (canaries) => {
      for (const canary of canaries) await assertAbsentFromTables(client, canary);
      await client.query("drop table ratelimits; drop table audit_events");
    });
  });

  it("would be found", async (t) => {
    const canary = new Canary("the key", "canary_5HueCGU8rMjxEXxiPuD5BDk");
    for (const form of [...canary.forms, ...canary.hashes]) {
      const text = `before ${form} after`;
      assert.throws(() => assertAbsent(text, [canary], "here"), /the key is in here/);
    }
    const directory = makeFolder(t);
    const database = new DatabaseSync(join(directory, "a.db"));
    database.exec(`pragma journal_mode = wal; create table a (b text); insert into a values ('${canary.secret}')`);
    assert.throws(() => assertAbsentFromFiles(directory, [canary]), /the key is in .*a\.db-wal/);
    database.close();
  });
});

function serve(directory: string, settings: Record<string, string>): Promise<Server> {
  return start({ directory, settings: { ROOT_KEY, LOG_LEVEL: "trace", ...settings } });
}

async function misuseSecrets(
  server: Server,
  directory: string,
  breakDatabase: (canaries: Canary[]) => void | Promise<void>,
): Promise<void> {
  const { apiId } = await server.ok("apis.createApi", { name: "canaries" }, ROOT_KEY);
  const { key, keyId } = await server.ok("keys.createKey", { apiId, prefix: PREFIX, name: "bird" }, ROOT_KEY);
  const canaries = [new Canary("the key", key), new Canary("the root key", ROOT_KEY)];

  // The answers that are meant to contain the secret are excluded; none of these repeats its input.
  for (const [operation, body] of [
    ["keys.verifyKey", { key }],
    ["keys.whoami", { key }],
    ["keys.getKey", { keyId }],
    ["apis.listKeys", { apiId }],
    ["keys.updateKey", { keyId, enabled: false }],
    ["keys.verifyKey", { key }],
  ] as const) {
    assertAbsent(JSON.stringify((await server.call(operation, body, ROOT_KEY)).body), canaries, operation);
  }

  const send = async (probe: Probe) => assertAbsent(await answerTo(server, probe), canaries, describeProbe(probe));
  for (const { secret } of canaries) {
    for (const probe of misuses(secret, apiId)) await send(probe);
    for (const text of invalidRequests(secret))
      assertAbsent(await answerToInvalid(server, text), canaries, `the answer to ${text}`);
  }
  const metrics = await fetch(`${server.address}/metrics`);
  if (metrics.status === 200) assertAbsent(await metrics.text(), canaries, "the metrics");

  await breakDatabase(canaries);
  const headers = { "content-type": "application/json", authorization: `Bearer ${ROOT_KEY}` };
  for (const operation of ["keys.createKey", "keys.whoami", "keys.updateKey"]) {
    const body = { "keys.createKey": { apiId }, "keys.whoami": { key }, "keys.updateKey": { keyId, name: "b" } }[
      operation
    ];
    const probe = { path: `/v2/${operation}?key=${key}`, headers, body: JSON.stringify(body) };
    assert.match(await answerTo(server, probe), /^500 /);
    await send(probe);
  }
  await server.logged("a request failed");

  // A clean stop moves the write-ahead log into the database, so the files are searched before and after.
  assertAbsentFromFiles(directory, canaries);
  assert.deepEqual(await server.kill("SIGTERM"), { code: 0, signal: null });
  assertAbsentFromFiles(directory, canaries);
  assertAbsent(server.stdout, canaries, "stdout");
  assertAbsent(server.stderr, canaries, "stderr");
}

/** @throws {AssertionError} if it contains a secret or the hash of one. */
function assertAbsent(text: string | Buffer, canaries: readonly Canary[], where: string): void {
  const bytes = Buffer.from(text as string);
  for (const { name, forms, hashes } of canaries) {
    for (const form of [...forms, ...hashes])
      assert(!bytes.includes(form), `${name} is in ${where}: ${around(bytes, form)}`);
  }
}

/** The database files may contain the hash of a secret, by which it is looked up. */
function assertAbsentFromFiles(directory: string, canaries: readonly Canary[]): void {
  let searched = 0;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readIfPresent(path);
    if (!bytes) continue;
    searched++;
    for (const { name, forms } of canaries) {
      for (const form of forms) assert(!bytes.includes(form), `${name} is in ${path}: ${around(bytes, form)}`);
    }
  }
  assert(searched > 0, `${directory} has no files`);
}

/** undefined: the service has deleted the file since its folder was listed, as it does with batches that are stored. */
function readIfPresent(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function assertAbsentFromTables(client: Client, canary: Canary): Promise<void> {
  const { rows: tables } = await client.query("select tablename from pg_tables where schemaname = 'public'");
  assert(tables.length > 0);
  for (const { tablename } of tables) {
    const { rows } = await client.query(`select t::text as line from "${tablename}" t`);
    const bytes = Buffer.from(rows.map(({ line }) => line).join("\n"));
    for (const form of canary.forms)
      assert(!bytes.includes(form), `${canary.name} is in ${tablename}: ${around(bytes, form)}`);
  }
}

function around(bytes: Buffer, form: Buffer): string {
  const at = bytes.indexOf(form);
  return bytes.subarray(Math.max(0, at - 120), at + form.length + 40).toString("latin1");
}

/** Status, headers and body in one text. */
async function answerTo(server: Server, { method = "POST", path, headers = {}, body }: Probe): Promise<string> {
  const sent = fetch(server.address + path, { method, headers, ...(body !== undefined && { body }) });
  // The service closes the connection of a body that is far too large. Some clients notice that before they read the
  // answer.
  const response = await ((body?.length ?? 0) > 1_000_000 ? sent.catch(() => undefined) : sent);
  return response ? `${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}` : "";
}

function answerToInvalid(server: Server, text: string): Promise<string> {
  const { hostname, port } = new URL(server.address);
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => socket.end(text));
    socket.setEncoding("latin1").on("data", (part) => {
      answer += part;
    });
    socket.on("error", () => {}).on("close", () => resolve(answer));
  });
}

function describeProbe({ method = "POST", path, headers, body = "" }: Probe): string {
  return `the answer to ${method} ${path} ${JSON.stringify(headers)} ${body.slice(0, 200)}`;
}
