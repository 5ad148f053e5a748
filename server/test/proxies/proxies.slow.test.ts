/** The configurations in deploy/proxies/, run by the real proxies. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import {
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type RequestListener,
  request,
  type Server,
} from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { busyness } from "../busyness.ts";
import { findTool, tools } from "../deploy/tools.ts";
import { TestServer } from "../harness.ts";
import { eventually, needProgram } from "../process.ts";
import { freePort } from "../services/free-port.ts";
import { makeDirectory, type Service, startService, unprivilegedAccount } from "../services/service.ts";
import { spellingsOf } from "./spellings.ts";

const proxies = fileURLToPath(new URL("../../../deploy/proxies", import.meta.url));

/** The addresses that take the place of those in a configuration. */
interface Addresses {
  apiId: string;
  service: number;
  application: number;
  /** A free port, for a listener inside of the proxy. */
  inner: number;
}

async function listen(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

function configuration(file: string, { apiId, service, application, inner }: Addresses, port: number): string {
  return readFileSync(join(proxies, file), "utf8")
    .replaceAll("api_123", apiId)
    .replaceAll("127.0.0.1:3000", `127.0.0.1:${service}`)
    .replaceAll("127.0.0.1:9000", `127.0.0.1:${application}`)
    .replaceAll("port_value: 3000", `port_value: ${service}`)
    .replaceAll("port_value: 9000", `port_value: ${application}`)
    .replaceAll("8079", String(inner))
    .replaceAll("8080", String(port));
}

/** HAProxy reports its start before it listens. */
function untilListening(name: string, { url }: Service): Promise<void> {
  const port = Number(new URL(url).port);
  const isListening = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve(true);
      }).once("error", () => resolve(false));
    });
  return eventually(`${name} to listen`, isListening);
}

async function startNginx(addresses: Addresses): Promise<Service> {
  const program = await needProgram("nginx");
  const account = unprivilegedAccount("www-data");
  return startService(
    (port) => {
      const directory = makeDirectory("nginx", account);
      writeFileSync(join(directory, "latchkey.conf"), configuration("nginx/latchkey.conf", addresses, port));
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const main = `
daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr notice;
events {}
http {
  access_log off;
${temporary.map((name) => `  ${name}_temp_path ${directory}/${name};`).join("\n")}
  include ${directory}/latchkey.conf;
}
`;
      writeFileSync(join(directory, "nginx.conf"), main);
      const args = ["-e", "stderr", "-p", directory, "-c", join(directory, "nginx.conf")];
      return { program, args, directory, account, stopSignal: "SIGTERM" };
    },
    /start worker processes/,
    (port) => `http://127.0.0.1:${port}`,
  );
}

async function startCaddy(addresses: Addresses): Promise<Service> {
  const program = await needProgram("caddy");
  const account = unprivilegedAccount("caddy");
  return startService(
    (port) => {
      const directory = makeDirectory("caddy", account);
      const text = `{\n\tadmin off\n}\n${configuration("caddy/Caddyfile", addresses, port)}`;
      writeFileSync(join(directory, "Caddyfile"), text);
      // Caddy stores its state in the home folder.
      const home = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"].map((name) => `${name}=${directory}`);
      const args = [...home, program, "run", "--adapter", "caddyfile", "--config", join(directory, "Caddyfile")];
      return { program: "/usr/bin/env", args, directory, account, stopSignal: "SIGTERM" };
    },
    /serving initial configuration/,
    (port) => `http://127.0.0.1:${port}`,
  );
}

async function startHaproxy(addresses: Addresses): Promise<Service> {
  const program = await needProgram("haproxy");
  const account = unprivilegedAccount("haproxy");
  return startService(
    (port) => {
      const directory = makeDirectory("haproxy", account);
      for (const file of ["haproxy.cfg", "latchkey.lua"]) {
        writeFileSync(join(directory, file), configuration(`haproxy/${file}`, addresses, port));
      }
      const args = ["-V", "-db", "-f", join(directory, "haproxy.cfg")];
      return { program, args, directory, account, stopSignal: "SIGTERM" };
    },
    /as the polling mechanism/,
    (port) => `http://127.0.0.1:${port}`,
  );
}

async function startEnvoy(addresses: Addresses): Promise<Service> {
  const program = findTool(tools.envoy);
  return startService(
    (port) => {
      const directory = makeDirectory("envoy", undefined);
      const file = join(directory, "envoy.yaml");
      writeFileSync(file, configuration("envoy/envoy.yaml", addresses, port));
      const args = ["--config-path", file, "--concurrency", "1", "--disable-hot-restart"];
      // Another account may not be allowed to read the cache of the repository.
      return { program, args, directory, account: undefined, stopSignal: "SIGTERM" };
    },
    /starting workers/,
    (port) => `http://127.0.0.1:${port}`,
  );
}

async function startTraefik(addresses: Addresses): Promise<Service> {
  const program = findTool(tools.traefik);
  const proxy = await startService(
    (port) => {
      const directory = makeDirectory("traefik", undefined);
      writeFileSync(join(directory, "latchkey.yaml"), configuration("traefik/latchkey.yaml", addresses, port));
      const text = configuration("traefik/traefik.yaml", addresses, port);
      const file = join(directory, "traefik.yaml");
      writeFileSync(file, `${text.replace("filename: ", `filename: ${directory}/`)}log: { level: DEBUG }\n`);
      const args = [`--configFile=${file}`];
      // After SIGTERM, it would wait for clients to close their connections.
      return { program, args, directory, account: undefined, stopSignal: "SIGKILL" };
    },
    /Creating load-balancer/,
    (port) => `http://127.0.0.1:${port}`,
  );
  await eventually("the routes of Traefik", async () => (await send(proxy.url, "/")).status === 401);
  return proxy;
}

/** Sends a request as it is: `fetch` would change its target, and some headers. */
function send(
  url: string,
  target: string,
  headers: OutgoingHttpHeaders = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, agent: false, signal: AbortSignal.timeout(30_000) }, (response) => {
      let text = "";
      response.setEncoding("latin1").on("data", (part: string) => {
        text += part;
      });
      response.on("error", reject).on("end", () => resolve({ status: response.statusCode!, text }));
    });
    // Node would reject some of these targets.
    sent.path = target;
    for (const [name, value] of Object.entries(headers)) sent.setHeader(name, value!);
    sent.on("error", reject).end();
  });
}

/** What is forged in a header of an end user. */
const FORGED = "forged";

/** Names that CGI, WSGI, Rack or an application itself could take for a header of the service. */
const OWN_NAMES = ["Auth", "Code", "Derived-Meta", "Key-Id", "Meta", "Owner", "Parent-Key-Id", "Remaining", "Root-Key"];
const FORGED_NAMES = OWN_NAMES.flatMap((name) => [
  `X-Latchkey-${name}`,
  `x-latchkey-${name}`.toLowerCase(),
  `X-LATCHKEY-${name}`.toUpperCase(),
  `X_Latchkey_${name.replaceAll("-", "_")}`,
  `X-Latchkey_${name}`,
  `x_LATCHKEY-${name}`,
  `X.Latchkey.${name}`,
  `X~Latchkey!${name}`,
]);

/** How a reader of the environment that CGI defines calls a header. */
const variableOf = (name: string) => `HTTP_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;

/** The status for a service that does not answer differs: each proxy has its own for an upstream that is away, and for one that hangs. */
for (const { name, start, away, hung } of [
  { name: "nginx", start: startNginx, away: 503, hung: 503 },
  { name: "HAProxy", start: startHaproxy, away: 503, hung: 503 },
  { name: "Caddy", start: startCaddy, away: 502, hung: 504 },
  { name: "Envoy", start: startEnvoy, away: 503, hung: 503 },
  { name: "Traefik", start: startTraefik, away: 502, hung: 504 },
]) {
  describe(`${name} in front of an application`, () => {
    const server = new TestServer({ settings: { TRUSTED_PROXIES: "127.0.0.1" } });
    /** The headers of each request that the application got, and their names as they arrived. */
    const arrived: IncomingHttpHeaders[] = [];
    const variables: Record<string, string>[] = [];
    let apiId: string;
    let service: Server;
    let application: Server;
    let proxy: Service | undefined;
    /** Why the proxy cannot run here. */
    let missing: string | undefined;
    /** Whether the service does not answer, as after SIGSTOP: connections are made, and nothing arrives on them. */
    let isHung = false;

    before(async () => {
      await server.open();
      apiId = await server.createApi();
      service = await listen((request, response) => {
        if (!isHung) server.service.dispatch(request, response);
      });
      application = await listen((request, response) => {
        arrived.push(request.headers);
        const read: Record<string, string> = {};
        for (let i = 0; i < request.rawHeaders.length; i += 2) {
          const variable = variableOf(request.rawHeaders[i]!);
          read[variable] =
            variable in read ? `${read[variable]},${request.rawHeaders[i + 1]}` : request.rawHeaders[i + 1]!;
        }
        variables.push(read);
        request.resume().on("end", () => response.end("the application"));
      });
      const addresses = { apiId, service: portOf(service), application: portOf(application), inner: await freePort() };
      try {
        proxy = await start(addresses);
        await untilListening(name, proxy);
      } catch (error) {
        // A configuration that the proxy rejects is a failure.
        if (/did not start/.test((error as Error).message)) throw error;
        missing = `needs ${name}: ${(error as Error).message.split("\n")[0]}`;
      }
    });
    after(async () => {
      await proxy?.stop();
      await close(application);
      if (service.listening) await close(service);
      await server.close();
    });

    const test = (title: string, run: () => Promise<void>) =>
      it(title, (t) => (missing === undefined ? run() : t.skip(missing)));
    const get = async (headers: Record<string, string>, more: RequestInit = {}) => {
      const before = arrived.length;
      const response = await fetch(`${proxy!.url}/documents?page=2`, {
        ...more,
        headers,
        signal: AbortSignal.timeout(10_000),
      });
      const text = await response.text();
      assert.equal(arrived.length - before, response.status === 200 ? 1 : 0);
      return { status: response.status, headers: response.headers, text };
    };
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

    test("passes a valid key on as its owner, without the key", async () => {
      const { keyId, key } = await server.createKey(apiId, {
        externalId: "user_1",
        meta: { plan: "pro, ☂" },
        credits: { remaining: 10 },
      });
      for (const more of [{}, { method: "POST", body: "b".repeat(100_000) }]) {
        const { status, text } = await get(bearer(key), more);
        assert.deepEqual([status, text], [200, "the application"]);
        const headers = arrived.at(-1)!;
        assert.equal(headers["x-latchkey-key-id"], keyId);
        assert.equal(headers["x-latchkey-owner"], "user_1");
        assert.deepEqual(JSON.parse(decodeURIComponent(headers["x-latchkey-meta"] as string)), { plan: "pro, ☂" });
        assert(!JSON.stringify(headers).includes(key));
      }
      assert.equal(arrived.at(-1)!["x-latchkey-remaining"], "8");
    });

    test("passes on what the service knows of a derived key", async () => {
      const { keyId } = await server.createKey(apiId, { externalId: "user_1", meta: { plan: "pro" } });
      const derived = await server.ok("keys.deriveKey", { keyId, ttl: 3_600_000, meta: { agent: "☂" } });
      assert.equal((await get(bearer(derived.key))).status, 200);
      const { HTTP_X_LATCHKEY_PARENT_KEY_ID, HTTP_X_LATCHKEY_DERIVED_META, HTTP_X_LATCHKEY_KEY_ID } = variables.at(-1)!;
      assert.deepEqual([HTTP_X_LATCHKEY_KEY_ID, HTTP_X_LATCHKEY_PARENT_KEY_ID], [derived.keyId, keyId]);
      assert.deepEqual(JSON.parse(decodeURIComponent(HTTP_X_LATCHKEY_DERIVED_META!)), { agent: "☂" });
    });

    test("removes headers of the end user that only the service may set", async () => {
      const { keyId, key } = await server.createKey(apiId);
      const spoofed = { "x-latchkey-owner": "admin", "x-latchkey-key-id": "key_admin", "x-latchkey-remaining": "9" };
      const rootKey = (await server.workspace("stranger")).key;
      await get({ ...bearer(key), ...spoofed, "x-latchkey-root-key": rootKey });
      const headers = arrived.at(-1)!;
      assert.equal(headers["x-latchkey-key-id"], keyId);
      for (const name of ["x-latchkey-owner", "x-latchkey-remaining", "x-latchkey-root-key", "authorization"]) {
        assert(!headers[name], `${name}: ${headers[name]}`);
      }
    });

    test("removes each header that a reader could take for one of the service", async () => {
      const { keyId, key } = await server.createKey(apiId);
      for (const forgedName of FORGED_NAMES) {
        const before = variables.length;
        const { status } = await send(proxy!.url, "/documents", { ...bearer(key), [forgedName]: FORGED });
        // Envoy rejects names with underscores.
        assert([200, 400].includes(status), `${forgedName}: ${status}`);
        assert.equal(variables.length - before, status === 200 ? 1 : 0);
        if (status !== 200) continue;
        const read = variables.at(-1)!;
        assert(!JSON.stringify(read).includes(FORGED), `${forgedName}: ${JSON.stringify(read)}`);
        assert.equal(read.HTTP_X_LATCHKEY_KEY_ID, keyId, forgedName);
        assert.equal(read.HTTP_X_LATCHKEY_OWNER ?? "", "", forgedName);
      }
    });

    test("passes on the headers of the service when the end user names them in Connection", async () => {
      const { keyId, key } = await server.createKey(apiId, { externalId: "user_1" });
      const names = "X-Latchkey-Key-Id, x-latchkey-owner";
      for (const connection of [`keep-alive, ${names}`, `close, ${names}`]) {
        const { status } = await send(proxy!.url, "/documents", { ...bearer(key), connection });
        if (status !== 200) continue;
        const { HTTP_X_LATCHKEY_KEY_ID, HTTP_X_LATCHKEY_OWNER } = variables.at(-1)!;
        assert.deepEqual([HTTP_X_LATCHKEY_KEY_ID, HTTP_X_LATCHKEY_OWNER], [keyId, "user_1"]);
      }
    });

    test("passes nothing on without a key, in any spelling of a path", async () => {
      const before = arrived.length;
      for (const path of ["/metrics", "/_latchkey", "/auth/verify"]) {
        const targets = spellingsOf(path).filter((target) => /^[\x21-\x7e]+$/.test(target));
        for (const target of [path, ...targets]) {
          // Some proxies close the connection when the target is none.
          const { status, text } = await send(proxy!.url, target).catch(() => ({ status: 400, text: "" }));
          assert(status >= 300, `${target}: ${status} ${text}`);
          assert.doesNotMatch(text, /latchkey_|process_cpu/);
        }
      }
      assert.equal(arrived.length, before);
    });

    test("rejects with the status of the reason", async () => {
      const keyWith = async (more: object) => (await server.createKey(apiId, more)).key;
      const missing = await get({});
      assert.equal(missing.status, 401);
      assert.equal(missing.headers.get("www-authenticate"), 'Bearer realm="api"');
      assert.equal((await get(bearer("unknown"))).status, 401);
      assert.equal((await get(bearer(await keyWith({ enabled: false })))).status, 401);
      assert.equal((await get(bearer(await keyWith({ credits: { remaining: 0 } })))).status, 402);
      const key = await keyWith({ ratelimits: [{ name: "requests", limit: 1, duration: 60_000, autoApply: true }] });
      assert.equal((await get(bearer(key))).status, 200);
      const denied = await get(bearer(key));
      assert.equal(denied.status, 429);
      assert.match(denied.headers.get("retry-after")!, /^[1-9]\d*$/);
      assert.match(denied.headers.get("ratelimit-policy")!, /^"requests";q=1;w=60;pk=:[A-Za-z0-9+/]{12}:$/);
    });

    test("reports the address of the end user", async () => {
      const { key } = await server.createKey(apiId);
      await server.ok("apis.updateApi", { apiId, allowedIps: ["203.0.113.0/24"] });
      // The end user cannot choose its address.
      assert.equal((await get({ ...bearer(key), "x-forwarded-for": "203.0.113.9" })).status, 403);
      await server.ok("apis.updateApi", { apiId, allowedIps: null });
      assert.equal((await get(bearer(key))).status, 200);
    });

    test("rejects a request within five seconds while the service hangs", async () => {
      const { key } = await server.createKey(apiId);
      assert.equal((await get(bearer(key))).status, 200);
      isHung = true;
      const startedAt = systemClock.monotonic();
      try {
        assert.equal((await get(bearer(key))).status, hung);
      } finally {
        isHung = false;
      }
      const took = systemClock.monotonic() - startedAt;
      assert(took < 5_000 * busyness(), `${Math.round(took)} ms`);
    });

    test("rejects everything while the service is away", async () => {
      const { key } = await server.createKey(apiId);
      assert.equal((await get(bearer(key))).status, 200);
      await close(service);
      assert.equal((await get(bearer(key))).status, away);
    });
  });
}

it("the tests forge each header that the service sets or reads", () => {
  const code = ["forward-auth.ts", "gateways/decision.ts"]
    .map((file) => readFileSync(new URL(`../../src/features/keys/${file}`, import.meta.url), "utf8"))
    .join("\n");
  const names = code.match(/(?<=["`]X-Latchkey-)[A-Z-]+/gi)!.map((name) => name.toLowerCase());
  assert.deepEqual(
    [...new Set(names)].sort(),
    OWN_NAMES.map((name) => name.toLowerCase()),
  );
});

describe("HAProxy in front of the nodes of the cluster", () => {
  // Metrics are on the listener of the API, which is the worst case.
  const server = new TestServer();
  let service: Server;
  let proxy: Service;
  before(async () => {
    await server.open();
    service = await listen(server.service.dispatch);
    const program = await needProgram("haproxy");
    const account = unprivilegedAccount("haproxy");
    proxy = await startService(
      (port) => {
        const directory = makeDirectory("haproxy", account);
        const text = readFileSync(join(proxies, "../compose/haproxy.cfg"), "utf8")
          .replaceAll(/latchkey-\w+:3000/g, `127.0.0.1:${portOf(service)}`)
          .replace("bind :3000", `bind 127.0.0.1:${port}`);
        writeFileSync(join(directory, "haproxy.cfg"), text);
        const args = ["-V", "-db", "-f", join(directory, "haproxy.cfg")];
        return { program, args, directory, account, stopSignal: "SIGTERM" };
      },
      /as the polling mechanism/,
      (port) => `http://127.0.0.1:${port}`,
    );
    await untilListening("HAProxy", proxy);
  });
  after(async () => {
    await proxy?.stop();
    await close(service);
    await server.close();
  });

  it("keeps metrics inside, in any spelling", async () => {
    for (const target of ["/metrics", ...spellingsOf("/metrics")].filter((one) => /^[\x21-\x7e]+$/.test(one))) {
      const { status, text } = await send(proxy.url, target);
      assert([400, 404].includes(status), `${target}: ${status} ${text.slice(0, 200)}`);
    }
  });
});
