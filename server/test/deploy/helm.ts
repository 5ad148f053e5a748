/**
 * `npm run test:helm`: the Helm chart, rendered and compared with the API of Kubernetes. Not part of `npm test`: where Helm
 * is missing, compiling it takes minutes.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { readEnvironment } from "../../src/platform/config/env.ts";
import { settings } from "../../src/platform/config/settings.ts";
import { makeFolder } from "../process.ts";
import { edgeOptions } from "./edge-command.ts";
import { needTool, repository, runTool, tools } from "./tools.ts";

const chart = join(repository, "deploy/helm/latchkey");
/** The oldest version that the chart accepts, and the newest that the validator knows. */
const kubernetes = ["1.25", "1.37"];
const HTTP = "app.kubernetes.io/name";

const secret = (name: string) => ({ name, key: "value" });
const cluster = {
  database: "postgres",
  secrets: { rootKey: secret("root"), databaseUrl: secret("database"), redisUrl: secret("redis") },
  replicas: 3,
};
const edges = { enabled: true, rootKey: secret("edge") };
/** Edges of a service that runs elsewhere. */
const region = { database: "none", edge: { ...edges, upstream: "https://keys.example.com", stale: "5m", replicas: 2 } };
/** Every value that adds something. */
const everything = {
  ...cluster,
  secrets: { ...cluster.secrets, vaultKey: secret("vault"), clickhouseUrl: secret("clickhouse") },
  settings: { VERIFY_AUTH: "required", LOOKUPS_PER_SECOND: 7_000 },
  edge: {
    ...edges,
    replicas: 3,
    stale: "30s",
    leases: false,
    settings: { DIRECTORY_BYTES: "64m", TRUSTED_PROXIES: "10.0.0.0/8" },
    service: { annotations: { team: "identity" } },
    grpc: { enabled: true },
    affinity: { podAntiAffinity: {} },
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }],
  },
  autoscaling: { enabled: true },
  serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
  imagePullSecrets: [{ name: "registry" }],
  service: { annotations: { team: "identity" } },
  grpc: { enabled: true },
  networkPolicy: {
    from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ingress" } } }],
    metricsFrom: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }],
    egress: [{ to: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }],
  },
  podAnnotations: { team: "identity" },
  podLabels: { team: "identity" },
  nodeSelector: { "kubernetes.io/arch": "amd64" },
  tolerations: [{ key: "dedicated", operator: "Exists" }],
  affinity: { podAntiAffinity: {} },
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway" },
  ],
};

// biome-ignore lint/suspicious/noExplicitAny: the objects of Kubernetes, checked by its schemas.
type Resource = any;

describe("the Helm chart", () => {
  for (const [name, values] of Object.entries({ embedded: {}, cluster, region, everything })) {
    it(`passes helm lint and the schemas of Kubernetes: ${name}`, async (t) => {
      const helm = needTool(t, tools.helm);
      const validate = helm && needTool(t, tools.kubernetesValidate);
      if (!validate) return;
      const file = valuesFile(t, values);
      const lint = await runTool(helm, ["lint", "--strict", chart, "--values", file]);
      assert.equal(lint.code, 0, lint.output);
      const rendered = join(makeFolder(t), "rendered.yaml");
      writeFileSync(rendered, await render(helm, file));
      for (const version of kubernetes) {
        const { code, output } = await runTool(validate, ["--strict", "-k", version, rendered], {
          PYTHONPATH: join(validate, "../.."),
        });
        assert.equal(code, 0, output);
        assert.doesNotMatch(output.replace(/^WARN.*ServiceMonitor.*$/gm, ""), /WARN|ERROR/);
      }
    });
  }

  it("detects a field that Kubernetes does not have", async (t) => {
    const validate = needTool(t, tools.kubernetesValidate);
    if (!validate) return;
    const file = join(makeFolder(t), "pod.yaml");
    writeFileSync(file, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, imagge: b}]}\n");
    const { code, output } = await runTool(validate, ["--strict", "-k", kubernetes[0]!, file], {
      PYTHONPATH: join(validate, "../.."),
    });
    assert.notEqual(code, 0);
    assert.match(output, /imagge/);
  });

  it("gives a pod settings that the service accepts", async (t) => {
    for (const values of [{}, cluster, everything]) {
      const resources = await resourcesOf(t, values);
      if (!resources) return;
      const { spec } = podOf(resources);
      const [container] = spec.containers;
      const environment = Object.fromEntries(
        container.env.map(({ name, value }: { name: string; value: string }) => {
          assert.equal(typeof value, "string", name);
          const mounted = value.replace("/run/secrets/latchkey", secretsFolder(t, spec));
          return [name, mounted];
        }),
      );
      const texts = readEnvironment(environment, settings);
      assert.equal(texts.get("DATA_DIR"), "/data");
      const secrets = Object.keys((values as { secrets?: object }).secrets ?? {}).length;
      assert.equal(container.env.filter(({ name }: { name: string }) => name.endsWith("_FILE")).length, secrets);
      // Otherwise Kubernetes adds LATCHKEY_PORT=tcp://… for a Service named latchkey.
      assert.equal(spec.enableServiceLinks, false);
    }
  });

  it("accepts the values in docs/deploying.md", async (t) => {
    const helm = needTool(t, tools.helm);
    if (!helm) return;
    const text = readFileSync(join(repository, "docs/deploying.md"), "utf8");
    const [, values] = /```yaml\n([\s\S]*?)```/.exec(text)!;
    await render(helm, valuesFile(t, parse(values!)));
    const flags = [...text.matchAll(/--set (\S+)/g)].flatMap(([, value]) => ["--set", value!]);
    assert(flags.length > 0);
    const { code, output } = await runTool(helm, [...template(valuesFile(t, {})), ...flags]);
    assert.equal(code, 0, output);
    assert.match(output, /image: "registry\.example\.com\/latchkey:/);
  });

  it("waits for the drain before it kills", async (t) => {
    const resources = await resourcesOf(t, { drainSeconds: 40 });
    if (!resources) return;
    const { spec } = podOf(resources);
    assert(
      spec.containers[0].env.some(
        (entry: { name: string; value: string }) => /DRAIN/.test(entry.name) && entry.value === "40s",
      ),
    );
    assert(spec.terminationGracePeriodSeconds > 40 + 10);
    const { readinessProbe, livenessProbe } = spec.containers[0];
    assert.equal(readinessProbe.httpGet.path, "/health/ready");
    assert.equal(livenessProbe.httpGet.path, "/health/live");
  });

  it("listens for gRPC only where it is asked to: at the service, at edges, or at both", async (t) => {
    for (const [service, edge] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ]) {
      const values = {
        grpc: { enabled: service, port: 8081 },
        edge: { ...edges, grpc: { enabled: edge, port: 8082 } },
      };
      const rendered = await resourcesOf(t, values);
      if (!rendered) return;
      assertGrpc(
        rendered.filter((resource) => !isEdge(resource)),
        service ? 8081 : undefined,
      );
      assertGrpc(rendered.filter(isEdge), edge ? 8082 : undefined);
    }
  });

  it("gives the gRPC of edges the default port of that of the service", async (t) => {
    const values = { grpc: { enabled: true }, edge: { ...edges, grpc: { enabled: true } } };
    const rendered = await resourcesOf(t, values);
    if (!rendered) return;
    for (const resources of [rendered.filter(isEdge), rendered.filter((resource) => !isEdge(resource))]) {
      assertGrpc(resources, 50_051);
    }
  });

  it("selects its pods, and nothing else, with every Service, budget, policy and monitor", async (t) => {
    const rendered = await resourcesOf(t, everything);
    if (!rendered) return;
    const resources = rendered.filter((resource) => !isEdge(resource));
    const { labels } = podOf(resources).metadata;
    const selectors = resources
      .filter(({ kind }) => !["Deployment", "Pod", "HorizontalPodAutoscaler"].includes(kind))
      .map(({ kind, spec }) => ({ kind, selector: spec.podSelector ?? spec.selector }));
    assert.deepEqual(selectors.map(({ kind }) => kind).sort(), [
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "ServiceMonitor",
    ]);
    for (const { kind, selector } of selectors) {
      const wanted = { ...(selector.matchLabels ?? selector) };
      if (kind === "ServiceMonitor") delete wanted["app.kubernetes.io/component"];
      assert(wanted[HTTP], kind);
      for (const [label, value] of Object.entries(wanted)) assert.equal(labels[label], value, kind);
    }
    const test = resources.find(({ kind }) => kind === "Pod");
    assert.notEqual(test.metadata.labels[HTTP], labels[HTTP]);
  });

  it("has edges only if it is asked to", async (t) => {
    const [without, beside] = [await resourcesOf(t, {}), await resourcesOf(t, { edge: edges })];
    if (!without || !beside) return;
    const named = (resources: Resource[]) => resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
    assert.deepEqual(without.filter(isEdge), []);
    assert.deepEqual(named(beside.filter((resource) => !isEdge(resource))), named(without));
    assert.deepEqual(named(beside.filter(isEdge)), [
      "Deployment latchkey-edge",
      "NetworkPolicy latchkey-edge",
      "Service latchkey-edge",
      "Service latchkey-edge-metrics",
    ]);
  });

  it("starts edges with options and settings that they accept, for its own service or one elsewhere", async (t) => {
    for (const [values, upstream, stale, leases] of [
      [{ edge: edges }, "http://latchkey:3000", "0", true],
      [{ edge: edges, service: { port: 80 } }, "http://latchkey:80", "0", true],
      [everything, "http://latchkey:3000", "30s", false],
      [region, "https://keys.example.com", "5m", true],
    ] as const) {
      const resources = await resourcesOf(t, values);
      if (!resources) return;
      const { spec } = podOf(resources.filter(isEdge));
      const [container] = spec.containers;
      const { leases: areLeased = true, ...options } = edgeOptions(container.args);
      assert.deepEqual(options, { upstream, name: "$(POD_NAME)", stale });
      assert.equal(areLeased, leases);
      const [{ name, valueFrom }, ...environment] = container.env;
      assert.deepEqual([name, valueFrom.fieldRef.fieldPath], ["POD_NAME", "metadata.name"]);
      const folder = secretsFolder(t, spec);
      const texts = readEnvironment(
        Object.fromEntries(
          environment.map((entry: Resource) => [entry.name, entry.value.replace("/run/secrets/latchkey", folder)]),
        ),
        settings,
      );
      assert.equal(texts.get("ROOT_KEY"), "a secret");
      assert.equal(spec.enableServiceLinks, false);
      assert.equal(spec.securityContext.runAsNonRoot, true);
      assert.equal(container.securityContext.readOnlyRootFilesystem, true);
      assert.equal(container.readinessProbe.httpGet.path, "/health/ready");
      assert(spec.terminationGracePeriodSeconds > Number.parseInt(texts.get("DRAIN")!, 10) + 10);
    }
  });

  it("selects edges, and no pod of the service, with everything that edges have", async (t) => {
    const resources = await resourcesOf(t, everything);
    if (!resources) return;
    const [own, others] = [resources.filter(isEdge), resources.filter((resource) => !isEdge(resource))];
    const [{ labels }, service] = [podOf(own).metadata, podOf(others).metadata.labels];
    assert.notEqual(labels[HTTP], service[HTTP]);
    assert.deepEqual(own.map(({ kind }) => kind).sort(), [
      "Deployment",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "ServiceMonitor",
    ]);
    for (const { kind, spec } of own) {
      const selector = spec.podSelector ?? spec.selector;
      const wanted = { ...(selector.matchLabels ?? selector) };
      if (kind === "ServiceMonitor") delete wanted["app.kubernetes.io/component"];
      for (const [label, value] of Object.entries(wanted)) assert.equal(labels[label], value, kind);
      assert.equal(wanted[HTTP], labels[HTTP], kind);
    }
    // Where policies name who may call whom, edges may call the service.
    const policy = (some: Resource[]) => some.find(({ kind }) => kind === "NetworkPolicy").spec;
    const admitted = policy(others).ingress[0].from.flatMap((peer: Resource) => peer.podSelector ?? []);
    assert.deepEqual(
      admitted.map(({ matchLabels }: Resource) => matchLabels),
      [policy(own).podSelector.matchLabels],
    );
    const reached = policy(own).egress.flatMap(({ to = [] }: Resource) =>
      to.flatMap((one: Resource) => one.podSelector ?? []),
    );
    assert.deepEqual(
      reached.map(({ matchLabels }: Resource) => matchLabels),
      [policy(others).podSelector.matchLabels],
    );
  });

  it("has only edges without a database, and its test asks them", async (t) => {
    const resources = await resourcesOf(t, region);
    if (!resources) return;
    const [test, ...more] = resources.filter((resource) => !isEdge(resource));
    assert.deepEqual(more, []);
    assert.equal(test.kind, "Pod");
    assert.equal(test.spec.containers[0].args.at(-1), "http://latchkey-edge:3000");
  });

  it("gives no object a name that is too long", async (t) => {
    const resources = await resourcesOf(t, { ...everything, fullnameOverride: "a".repeat(60) });
    if (!resources) return;
    for (const { kind, metadata } of resources) assert(metadata.name.length <= 63, `${kind} ${metadata.name}`);
  });

  it("replaces the only process on PostgreSQL after its end, and several one by one", async (t) => {
    const { redisUrl: _, ...secrets } = cluster.secrets;
    const alone = await resourcesOf(t, { ...cluster, replicas: 1, secrets });
    const several = await resourcesOf(t, cluster);
    if (!alone || !several) return;
    const strategy = (resources: Resource[]) => resources.find(({ kind }) => kind === "Deployment").spec.strategy;
    assert.deepEqual(strategy(alone), { type: "Recreate" });
    assert.deepEqual(strategy(several), { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
  });

  const { redisUrl: _, ...withoutRedis } = cluster.secrets;
  for (const [what, values, message] of [
    ["two pods with an embedded database", { replicas: 2 }, /belongs to one pod/],
    ["an autoscaler with an embedded database", { autoscaling: { enabled: true } }, /belongs to one pod/],
    ["PostgreSQL without an address", { database: "postgres" }, /set secrets\.databaseUrl/],
    ["an address without PostgreSQL", { secrets: { databaseUrl: secret("a") } }, /set database to postgres/],
    ["several pods without Redis", { ...cluster, secrets: withoutRedis }, /set secrets\.redisUrl/],
    ["a secret without its key", { secrets: { rootKey: { name: "a" } } }, /'key' required/],
    ["a secret as a setting", { settings: { ROOT_KEY: "a" } }, /ROOT_KEY/],
    ["a setting that the chart makes", { settings: { DRAIN: "1s" } }, /DRAIN/],
    ["an edge without a root key", { edge: { enabled: true } }, /set edge\.rootKey/],
    ["neither a service nor edges", { database: "none" }, /set edge\.enabled/],
    ["edges of no service", { database: "none", edge: edges }, /set edge\.enabled to true, and edge\.upstream/],
    ["edges of another service beside one", { edge: { ...edges, upstream: "http://a" } }, /set database to none/],
    ["an address that an edge rejects", { edge: { ...edges, upstream: "http://a?b" } }, /upstream/],
    ["a duration that an edge rejects", { edge: { ...edges, stale: "5 minutes" } }, /stale/],
    ["a setting of edges that the chart makes", { edge: { ...edges, settings: { PORT: 1 } } }, /PORT/],
    ["the gRPC port of edges as a setting", { edge: { ...edges, settings: { GRPC_PORT: 1 } } }, /GRPC_PORT/],
    ["no port of gRPC at edges", { edge: { ...edges, grpc: { enabled: true, port: 0 } } }, /port/],
    ["an unknown value of edges", { edge: { ...edges, sockets: 1 } }, /sockets/],
    ["an unknown value", { replicaCount: 2 }, /replicaCount/],
  ] as const) {
    it(`rejects ${what}`, async (t) => {
      const helm = needTool(t, tools.helm);
      if (!helm) return;
      const { code, output } = await runTool(helm, template(valuesFile(t, values)));
      assert.notEqual(code, 0);
      assert.match(output, message);
    });
  }

  it("accepts every other setting of the service", () => {
    const schema = JSON.parse(readFileSync(join(chart, "values.schema.json"), "utf8"));
    const { pattern, not } = schema.definitions.settings.propertyNames;
    for (const { name } of settings) assert.match(name, new RegExp(pattern));
    const secrets = settings.filter(({ isSecret }) => isSecret).map(({ name }) => name);
    assert.deepEqual(
      new Set(not.enum),
      new Set([...secrets, "HOST", "PORT", "GRPC_PORT", "DATA_DIR", "DRAIN", "METRICS"]),
    );
    const defaults = parse(readFileSync(join(chart, "values.yaml"), "utf8"));
    assert.deepEqual(Object.keys(schema.properties.secrets.properties), Object.keys(defaults.secrets));
  });
});

function template(values: string): string[] {
  return ["template", "latchkey", chart, "--values", values, "--kube-version", kubernetes[1]!];
}

async function render(helm: string, values: string): Promise<string> {
  const { code, output } = await runTool(helm, template(values));
  assert.equal(code, 0, output);
  return output;
}

/** What the chart creates; undefined if there is no Helm. */
async function resourcesOf(t: TestContext, values: object): Promise<Resource[] | undefined> {
  const helm = needTool(t, tools.helm);
  if (!helm) return undefined;
  return parseAllDocuments(await render(helm, valuesFile(t, values))).map((document) => document.toJS());
}

/** Asserts where its callers reach gRPC, and that container, Service and policy agree. */
function assertGrpc(resources: Resource[], servicePort: number | undefined): void {
  const isGrpc = ({ name, port }: Resource) => name === "grpc" || port === "grpc";
  const [{ env, ports }] = podOf(resources).spec.containers;
  const setting = env.find(({ name }: Resource) => name === "LATCHKEY_GRPC_PORT")?.value;
  assert.equal(setting, servicePort && "50051");
  const container = ports.filter(isGrpc).map(({ containerPort }: Resource) => containerPort);
  const services = resources.filter(({ kind }) => kind === "Service").flatMap(({ spec }) => spec.ports);
  const policies = resources.filter(({ kind }) => kind === "NetworkPolicy").flatMap(({ spec }) => spec.ingress);
  const admitted = policies.filter((rule) => rule.ports.some(isGrpc));
  if (servicePort === undefined) {
    assert.deepEqual([container, services.filter(isGrpc), admitted], [[], [], []]);
    return;
  }
  assert.deepEqual(container, [50_051]);
  assert.deepEqual(services.filter(isGrpc), [
    { name: "grpc", port: servicePort, targetPort: "grpc", appProtocol: "kubernetes.io/h2c" },
  ]);
  // Who may call the API, and not who may read the metrics.
  assert.deepEqual(
    admitted.map((rule) => rule.ports),
    [[{ port: "http" }, { port: "grpc" }]],
  );
}

function isEdge({ metadata }: Resource): boolean {
  return metadata.labels[HTTP] === "latchkey-edge";
}

function podOf(resources: Resource[]): Resource {
  return resources.find(({ kind }) => kind === "Deployment" || kind === "StatefulSet").spec.template;
}

/** The folder that a pod's projected secrets make. */
function secretsFolder(t: TestContext, { volumes = [] }: Resource): string {
  const folder = makeFolder(t);
  const { projected } = volumes.find(({ name }: { name: string }) => name === "secrets") ?? {};
  for (const { secret } of projected?.sources ?? []) {
    for (const { path } of secret.items) writeFileSync(join(folder, path), "a secret");
  }
  return folder;
}

function valuesFile(t: TestContext, values: object): string {
  const file = join(makeFolder(t), "values.json");
  writeFileSync(file, JSON.stringify(values));
  return file;
}
