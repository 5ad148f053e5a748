/** The files for Docker Compose. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { parse } from "yaml";
import { readConfig } from "../../src/platform/config/config.ts";
import { readEnvironment } from "../../src/platform/config/env.ts";
import { readSecrets } from "../../src/platform/config/secrets.ts";
import { settings } from "../../src/platform/config/settings.ts";
import { makeFolder, needProgram } from "../process.ts";
import { edgeOptions } from "./edge-command.ts";
import { needTool, repository, runTool, tools } from "./tools.ts";

const folder = join(repository, "deploy/compose");
const embedded = read("embedded.yaml");
const cluster = read("cluster.yaml");
const { edge } = read("edge.yaml").services;
const nodes = [embedded.services.latchkey, cluster.services["latchkey-a"], cluster.services["latchkey-b"]];

describe("the files for Docker Compose", () => {
  for (const name of ["embedded.yaml", "cluster.yaml", "edge.yaml"]) {
    it(`conform to the specification: ${name}`, async (t) => {
      const validate = needTool(t, tools.composeSpec);
      if (!validate) return;
      const { code, output } = await runTool(validate, [join(folder, name)]);
      assert.equal(code, 0, output);
    });
  }

  it("do not conform with an unknown field", async (t) => {
    const validate = needTool(t, tools.composeSpec);
    if (!validate) return;
    const file = join(makeFolder(t), "compose.yaml");
    writeFileSync(file, "services: { a: { image: b, readonly: true } }\n");
    const { code, output } = await runTool(validate, [file]);
    assert.notEqual(code, 0);
    assert.match(output, /readonly/);
  });

  it("confine the service, and leave a stop the time that it needs", () => {
    for (const node of [...nodes, edge]) {
      assert.equal(node.read_only, true);
      assert.deepEqual(node.cap_drop, ["ALL"]);
      // The default of LATCHKEY_DRAIN, and what a stop takes at most after it.
      assert(Number.parseInt(node.stop_grace_period, 10) > 5 + 10);
      assert(node.volumes.some((volume: string) => volume.endsWith(":/data")));
    }
  });

  it("serve metrics on a listener of its own, which no proxy reaches", () => {
    for (const { environment } of [...nodes, edge]) {
      const { metrics, port } = readConfig(
        readEnvironment({ LATCHKEY_METRICS: environment.LATCHKEY_METRICS }, settings),
      );
      assert(typeof metrics === "object" && metrics.port !== port);
      assert.doesNotMatch(readFileSync(join(folder, "haproxy.cfg"), "utf8"), new RegExp(String(metrics.port)));
    }
    for (const { ports = [] } of [embedded, cluster].flatMap(({ services }) =>
      Object.values<{ ports?: string[] }>(services),
    ))
      for (const port of ports.filter((one) => one.endsWith(":9464"))) assert.match(port, /:-127\.0\.0\.1:9464\}/);
  });

  it("share the folder of the edge's socket as a volume", () => {
    const { socket } = edgeOptions(edge.command.map((text: string) => text.replace(/^\$\{\w+:-(.*)\}$/, "$1")));
    assert(edge.volumes.includes(`socket:${dirname(String(socket))}`));
    // Anybody else has no way to the socket: account and group of the image, and those that have the group.
    const [, account] = /^USER (\d+):\1$/m.exec(readFileSync(join(folder, "../Dockerfile"), "utf8"))!;
    assert.match(
      read("edge.yaml").volumes.socket.driver_opts.o,
      new RegExp(`uid=${account},gid=${account},mode=0770$`),
    );
  });

  it("give each node a data folder of its own", () => {
    const [, a, b] = nodes.map(({ volumes }) => volumes[0]);
    assert.notEqual(a, b);
  });

  it("wait for servers that are healthy", () => {
    const { services } = cluster;
    for (const [name, { condition }] of Object.entries<{ condition: string }>(services["latchkey-a"].depends_on)) {
      assert.equal(condition, "service_healthy");
      assert(services[name].healthcheck.test.length > 1, name);
    }
  });

  it("have secrets that make-secrets.sh makes, which fit each other and the service", (t) => {
    const secrets = makeSecrets(t);
    const declared = Object.entries<{ file: string }>(cluster.secrets);
    assert.deepEqual(readdirSync(secrets).sort(), declared.map(([name]) => name).sort());
    for (const [name, { file }] of declared) assert.equal(file, `secrets/${name}`);
    for (const [name, service] of Object.entries<{ secrets?: string[]; environment?: object }>(cluster.services)) {
      for (const path of JSON.stringify(service).match(/(?<=\/run\/secrets\/)[a-z-]+/g) ?? []) {
        assert(service.secrets?.includes(path), `${name} reads ${path}`);
      }
    }

    const environment = Object.entries<string>(nodes[1].environment);
    const given = environment.map(([name, value]) => [name, value.replace("/run/secrets", secrets)]);
    const texts = readEnvironment(Object.fromEntries(given), settings);
    const { rootKey, vaultKeys, databaseUrl, redisUrl, clickhouseUrl } = readSecrets(texts);
    const secret = (name: string) => readFileSync(join(secrets, name), "utf8").trim();
    assert.equal(rootKey, secret("root-key"));
    assert.equal(vaultKeys.length, 1);
    assert.equal(readConfig(texts).database.kind, "postgres");
    assert.equal(new URL(databaseUrl!).password, secret("postgres-password"));
    assert.equal(`requirepass ${new URL(redisUrl!).password}`, secret("redis-config"));
    assert.equal(new URL(clickhouseUrl!).password, secret("clickhouse-password"));
    for (const url of [databaseUrl, redisUrl, clickhouseUrl]) assert(cluster.services[new URL(url!).hostname], url);
  });

  it("have secrets that containers can read, in a folder that others cannot", (t) => {
    const secrets = makeSecrets(t);
    assert.equal(statSync(secrets).mode & 0o777, 0o700);
    for (const name of readdirSync(secrets)) assert.equal(statSync(join(secrets, name)).mode & 0o777, 0o444, name);
  });

  it("keep secrets that exist", (t) => {
    const secrets = makeSecrets(t);
    const contents = () => readdirSync(secrets).map((name) => readFileSync(join(secrets, name), "utf8"));
    const before = contents();
    execFileSync(join(secrets, "../make-secrets.sh"), { stdio: "pipe" });
    assert.deepEqual(contents(), before);
  });

  it("put a proxy before the nodes that they trust, and that HAProxy accepts", async (t) => {
    const [{ subnet }] = cluster.networks.default.ipam.config;
    for (const node of nodes.slice(1)) assert.equal(node.environment.LATCHKEY_TRUSTED_PROXIES, subnet);
    const proxy = readFileSync(join(folder, "haproxy.cfg"), "utf8");
    const servers = [...proxy.matchAll(/^ +server \w+ ([\w-]+):3000$/gm)].map(([, name]) => name!);
    assert.deepEqual(
      servers,
      Object.keys(cluster.services).filter((name) => name.startsWith("latchkey-")),
    );
    // Names of containers do not resolve here.
    const file = join(makeFolder(t), "haproxy.cfg");
    writeFileSync(file, proxy.replaceAll(/latchkey-\w+:3000/g, "127.0.0.1:3000"));
    const { code, output } = await runTool(await needProgram("haproxy"), ["-c", "-f", file]);
    assert.equal(code, 0, output);
    assert.doesNotMatch(output, /WARNING/);
  });
});

describe("the configurations of HAProxy", () => {
  it("have a timeout of checks: without one, a check fails when its answer takes longer than the interval", () => {
    const files = globSync("deploy/**/*.cfg", { cwd: repository });
    assert.deepEqual(files.sort(), ["deploy/compose/haproxy.cfg", "deploy/proxies/haproxy/haproxy.cfg"]);
    for (const file of files)
      assert.match(readFileSync(join(repository, file), "utf8"), /^ {2}timeout check \d+s$/m, file);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: the validator checks its shape.
function read(name: string): any {
  return parse(readFileSync(join(folder, name), "utf8"), { merge: true });
}

/** The folder with the secrets that the script makes beside a copy of itself. */
function makeSecrets(t: TestContext): string {
  const copy = join(makeFolder(t), "compose");
  mkdirSync(copy);
  cpSync(join(folder, "make-secrets.sh"), join(copy, "make-secrets.sh"));
  execFileSync(join(copy, "make-secrets.sh"), { stdio: "pipe" });
  return join(copy, "secrets");
}
