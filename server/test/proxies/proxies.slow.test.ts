/** The configurations in deploy/proxies/, run by the real proxies. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { findTool, tools } from "../deploy/tools.ts";
import { TestServer } from "../harness.ts";
import { needProgram } from "../process.ts";
import { makeDirectory, type Service, startService, unprivilegedAccount } from "../services/service.ts";

const proxies = fileURLToPath(new URL("../../../deploy/proxies", import.meta.url));

/** The addresses that take the place of those in a configuration. */
interface Addresses {
  apiId: string;
  service: number;
  application: number;
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

function configuration(file: string, { apiId, service, application }: Addresses, port: number): string {
  return readFileSync(join(proxies, file), "utf8")
    .replaceAll("api_123", apiId)
    .replaceAll("127.0.0.1:3000", `127.0.0.1:${service}`)
    .replaceAll("127.0.0.1:9000", `127.0.0.1:${application}`)
    .replaceAll("port_value: 3000", `port_value: ${service}`)
    .replaceAll("port_value: 9000", `port_value: ${application}`)
    .replaceAll("8080", String(port));
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

/** The status for a service that does not answer differs: each proxy has its own for an upstream that is away. */
for (const { name, start, away } of [
  { name: "nginx", start: startNginx, away: 503 },
  { name: "HAProxy", start: startHaproxy, away: 503 },
  { name: "Caddy", start: startCaddy, away: 502 },
  { name: "Envoy", start: startEnvoy, away: 503 },
]) {
  describe(`${name} in front of an application`, () => {
    const server = new TestServer({ settings: { TRUSTED_PROXIES: "127.0.0.1" } });
    /** The headers of each request that the application got. */
    const arrived: IncomingHttpHeaders[] = [];
    let apiId: string;
    let service: Server;
    let application: Server;
    let proxy: Service;

    before(async () => {
      await server.open();
      apiId = await server.createApi();
      service = await listen(server.service.dispatch);
      application = await listen((request, response) => {
        arrived.push(request.headers);
        request.resume().on("end", () => response.end("the application"));
      });
      proxy = await start({ apiId, service: portOf(service), application: portOf(application) });
    });
    after(async () => {
      await proxy?.stop();
      await close(application);
      if (service.listening) await close(service);
      await server.close();
    });

    const get = async (headers: Record<string, string>, more: RequestInit = {}) => {
      const before = arrived.length;
      const response = await fetch(`${proxy.url}/documents?page=2`, {
        ...more,
        headers,
        signal: AbortSignal.timeout(10_000),
      });
      const text = await response.text();
      assert.equal(arrived.length - before, response.status === 200 ? 1 : 0);
      return { status: response.status, headers: response.headers, text };
    };
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

    it("passes a valid key on as its owner, without the key", async () => {
      const { keyId, key } = await server.createKey(apiId, {
        ...{ externalId: "user_1", meta: { plan: "pro, ☂" }, credits: { remaining: 10 } },
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

    it("removes headers of the end user that only the service may set", async () => {
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

    it("rejects with the status of the reason", async () => {
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
      assert.equal(denied.headers.get("ratelimit-policy"), '"requests";q=1;w=60');
    });

    it("reports the address of the end user", async () => {
      const { key } = await server.createKey(apiId);
      await server.ok("apis.updateApi", { apiId, allowedIps: ["203.0.113.0/24"] });
      // The end user cannot choose its address.
      assert.equal((await get({ ...bearer(key), "x-forwarded-for": "203.0.113.9" })).status, 403);
      await server.ok("apis.updateApi", { apiId, allowedIps: null });
      assert.equal((await get(bearer(key))).status, 200);
    });

    it("rejects everything while the service is away", async () => {
      const { key } = await server.createKey(apiId);
      assert.equal((await get(bearer(key))).status, 200);
      await close(service);
      assert.equal((await get(bearer(key))).status, away);
    });
  });
}
