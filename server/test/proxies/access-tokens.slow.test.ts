/** Access tokens at Envoy, whose filter `jwt_authn` verifies them as docs/oauth.md says. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import { codeBlocks } from "../code-blocks.ts";
import { findTool, repository, tools } from "../deploy/tools.ts";
import { basic } from "../oauth-caller.ts";
import { eventually, type Server as Latchkey, start } from "../process.ts";
import { freePort } from "../services/free-port.ts";
import { makeDirectory, type Service, startService } from "../services/service.ts";

const AUDIENCE = "https://api.example.com";
const OTHER = "https://other.example.com";

const listening = async (server: Server) => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
};

/** The provider of the documentation, at the addresses of the test. */
function providers(issuer: string): object {
  const text = readFileSync(join(repository, "docs/oauth.md"), "utf8");
  const block = codeBlocks(text).find(({ code }) => code.startsWith("providers:"));
  assert(block, "docs/oauth.md has no provider for Envoy");
  return parse(block.code.replaceAll("https://keys.example.com", issuer)).providers;
}

function configuration(issuer: string, port: number, servicePort: number, applicationPort: number): string {
  const cluster = (name: string, at: number) => ({
    name,
    connect_timeout: "1s",
    type: "STATIC",
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [{ endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: at } } } }],
        },
      ],
    },
  });
  const type = "type.googleapis.com/envoy.extensions.filters";
  const filters = [
    {
      name: "envoy.filters.http.jwt_authn",
      typed_config: {
        "@type": `${type}.http.jwt_authn.v3.JwtAuthentication`,
        providers: providers(issuer),
        rules: [{ match: { prefix: "/" }, requires: { provider_name: "latchkey" } }],
      },
    },
    { name: "envoy.filters.http.router", typed_config: { "@type": `${type}.http.router.v3.Router` } },
  ];
  const manager = {
    "@type": `${type}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "api",
    http_filters: filters,
    route_config: {
      virtual_hosts: [
        { name: "api", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "application" } }] },
      ],
    },
  };
  return JSON.stringify({
    static_resources: {
      listeners: [
        {
          name: "api",
          address: { socket_address: { address: "127.0.0.1", port_value: port } },
          filter_chains: [
            { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] },
          ],
        },
      ],
      clusters: [cluster("latchkey", servicePort), cluster("application", applicationPort)],
    },
  });
}

for (const algorithm of ["RS256", "ES256"]) {
  describe(`access tokens with ${algorithm} at Envoy`, () => {
    const application = createServer((_request, response) => response.end("from the application"));
    let envoy: Service;
    let service: Latchkey;
    let issuer: string;
    const folder = mkdtempSync(join(tmpdir(), "latchkey-test-tokens-"));
    before(async () => {
      const servicePort = await freePort();
      issuer = `http://127.0.0.1:${servicePort}`;
      const settings = {
        PUBLIC_URL: issuer,
        OAUTH_TOKENS: "on",
        OAUTH_TOKEN_LIFE: "10s",
        OAUTH_ALGORITHM: algorithm,
      };
      service = await start({ directory: folder, settings, args: ["--port", String(servicePort)] });
      const applicationPort = await listening(application);
      const program = findTool(tools.envoy);
      envoy = await startService(
        (port) => {
          const directory = makeDirectory("envoy", undefined);
          const file = join(directory, "envoy.json");
          writeFileSync(file, configuration(issuer, port, servicePort, applicationPort));
          const args = ["--config-path", file, "--concurrency", "1", "--disable-hot-restart"];
          return { program, args, directory, account: undefined, stopSignal: "SIGTERM" };
        },
        /starting workers/,
        (port) => `http://127.0.0.1:${port}`,
      );
    });
    after(async () => {
      await envoy?.stop();
      await service?.kill("SIGTERM");
      application.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const get = (token?: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
        request(envoy.url, { agent: false, headers }, (response) => {
          response.resume().once("end", () => resolve(response.statusCode!));
        })
          .once("error", reject)
          .end();
      });

    it("pass while they are valid, and nothing else does", async () => {
      const { apiId } = await service.ok("apis.createApi", { name: "documents" });
      await service.ok("apis.updateApi", { apiId, resources: [AUDIENCE, OTHER] });
      const { keyId, key } = await service.ok("keys.createKey", { apiId });
      const tokenFor = async (resource: string) => {
        const answer = await fetch(`${issuer}/oauth/token`, {
          method: "POST",
          headers: { authorization: basic(keyId, key) },
          body: new URLSearchParams({ grant_type: "client_credentials", resource }),
        });
        return ((await answer.json()) as { access_token: string }).access_token;
      };
      const token = await tokenFor(AUDIENCE);
      assert.equal(await get(token), 200);
      assert.equal(await get(), 401);
      assert.equal(await get(key), 401);
      assert.equal(await get(await tokenFor(OTHER)), 403);
      const [head, body, signature] = token.split(".") as [string, string, string];
      assert.equal(await get(`${head}.${body}.${signature.slice(0, -8)}AAAAAAAA`), 401);
      const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url");
      assert.equal(await get(`${none}.${body}.`), 401);
      // It outlives the revocation of its key, and ends with its life.
      await service.ok("keys.updateKey", { keyId, enabled: false });
      assert.equal(await get(token), 200);
      await eventually("the token to expire at Envoy", async () => (await get(token)) === 401);
    });
  });
}
