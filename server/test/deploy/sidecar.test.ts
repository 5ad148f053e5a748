/** The pod of an application with an edge beside it, `deploy/kubernetes/sidecar.yaml`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { readConfig } from "../../src/platform/config/config.ts";
import { readEnvironment } from "../../src/platform/config/env.ts";
import { settings } from "../../src/platform/config/settings.ts";
import { edgeOptions } from "./edge-command.ts";
import { needTool, repository, runTool, tools } from "./tools.ts";

// biome-ignore lint/suspicious/noExplicitAny: the validator checks its shape.
type Json = any;

const file = join(repository, "deploy/kubernetes/sidecar.yaml");
const text = readFileSync(file, "utf8");
const pod: Json = parse(text).spec.template.spec;
const [edge] = pod.initContainers;
const [application] = pod.containers;
/** The first version whose sidecars need no switch, and the newest that the validator knows. */
const kubernetes = ["1.29", "1.37"];
/** Seconds after a drain that a stop takes at most, and what Kubernetes gives an application by default. */
const STOP_MAX = 10;
const APPLICATION_STOP_MAX = 30;

const mountOf = (container: Json, name: string): Json =>
  container.volumeMounts.find((mount: Json) => mount.name === name);

describe("the edge beside an application in Kubernetes", () => {
  for (const version of kubernetes) {
    it(`conforms to the schemas of Kubernetes ${version}`, async (t) => {
      const validate = needTool(t, tools.kubernetesValidate);
      if (!validate) return;
      const { code, output } = await runTool(validate, ["--strict", "-k", version, file], {
        PYTHONPATH: join(validate, "../.."),
      });
      assert.equal(code, 0, output);
      assert.doesNotMatch(output, /WARN|ERROR/);
    });
  }

  it("has options and settings that the edge accepts, and a secret that it can read", () => {
    const { socket, upstream, name } = edgeOptions(edge.args);
    assert.equal(dirname(String(socket)), mountOf(edge, "socket").mountPath);
    assert(URL.canParse(String(upstream)));
    assert.equal(name, "$(POD_NAME)");
    const given = edge.env.filter(({ name }: Json) => name.startsWith("LATCHKEY_"));
    const secret = pod.volumes.find((volume: Json) => volume.name === "edge-key").secret;
    const key = given.find((entry: Json) => entry.name === "LATCHKEY_ROOT_KEY_FILE").value;
    assert.equal(key, join(mountOf(edge, "edge-key").mountPath, secret.items[0].path));
    assert.equal(secret.defaultMode, 0o440);
    const plain = given.filter((entry: Json) => entry.value !== key);
    const config = readConfig(
      readEnvironment(Object.fromEntries(plain.map(({ name, value }: Json) => [name, value])), settings),
    );
    // Other pods reach its metrics only.
    assert.deepEqual([config.host, config.drain], ["127.0.0.1", 0]);
    assert(typeof config.metrics === "object" && config.metrics.port === edge.ports[0].containerPort);
    assert.equal(pod.enableServiceLinks, false);
    assert(pod.terminationGracePeriodSeconds >= APPLICATION_STOP_MAX + STOP_MAX);
  });

  it("shares the folder of the socket with the application, by a group that both have", () => {
    const [mine, its] = [mountOf(edge, "socket"), mountOf(application, "socket")];
    assert.equal(mine.mountPath, its.mountPath);
    assert.equal(its.readOnly, true);
    assert.equal(mine.readOnly, undefined);
    assert(Number.isInteger(pod.securityContext.fsGroup));
    const shared = pod.volumes.find((volume: Json) => volume.name === "socket");
    assert(shared.emptyDir);
    assert.deepEqual(
      application.volumeMounts.map((mount: Json) => mount.name),
      ["socket"],
    );
  });

  it("starts before the application and stops after it", () => {
    assert.equal(edge.restartPolicy, "Always");
    assert(edge.startupProbe);
    // The root key of the edge is not the application's.
    assert.notEqual(
      application.env[0].valueFrom.secretKeyRef.name,
      pod.volumes.find((volume: Json) => volume.name === "edge-key").secret.secretName,
    );
  });
});
