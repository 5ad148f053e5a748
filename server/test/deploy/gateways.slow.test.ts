/**
 * The recipes in deploy/gateways/ fit the definitions of Envoy Gateway and Istio. These come from the module proxy of Go;
 * without Go or the proxy the test is skipped.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse, parseAllDocuments } from "yaml";
import { repository } from "./tools.ts";

// biome-ignore lint/suspicious/noExplicitAny: resources of Kubernetes, whose shapes are what is tested.
type Json = any;

const folder = join(repository, "deploy/gateways");
const recipes = globSync("*/*.yaml", { cwd: folder });
const resourcesOf = (recipe: string): Json[] =>
  parseAllDocuments(readFileSync(join(folder, recipe), "utf8")).map((document) => document.toJS());

describe("the recipes for gateways", () => {
  it("fit the definitions of Envoy Gateway and Istio", async (t) => {
    let directories: string[];
    try {
      const modules = ["github.com/envoyproxy/gateway@v1.9.1", "istio.io/api@v1.32.0"];
      const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", ...modules], {
        timeout: 300_000,
      });
      directories = stdout.match(/(?<="Dir": ")[^"]+/g)!;
    } catch (error) {
      return t.skip(`the definitions cannot be had: ${(error as Error).message.slice(0, 200)}`);
    }
    const [gateway, istio] = directories as [string, string];
    const generated = join(gateway, "charts/gateway-helm/charts/crds/crds/generated");
    const definitions = [
      ...["envoypatchpolicies", "securitypolicies"].map((name) =>
        join(generated, `gateway.envoyproxy.io_${name}.yaml`),
      ),
      join(istio, "kubernetes/customresourcedefinitions.gen.yaml"),
    ].flatMap((file) => parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS() as Json));
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    let checked = 0;
    for (const resource of recipes.flatMap(resourcesOf)) {
      const [group, version] = resource.apiVersion.split("/");
      const definition = definitions.find(({ spec }) => spec?.group === group && spec.names.kind === resource.kind);
      const found = definition.spec.versions.find(({ name }: Json) => name === version);
      const validate = ajv.compile(closed(found.schema.openAPIV3Schema.properties.spec));
      assert(validate(resource.spec), `${resource.kind} ${resource.metadata.name}: ${JSON.stringify(validate.errors)}`);
      // The definition notices a member that it does not have.
      assert(!validate({ ...resource.spec, misspelled: true }));
      checked++;
    }
    assert.equal(checked, 6);
    // The provider of Istio is in a comment, for MeshConfig, which has no definition but its message.
    const comment = readFileSync(join(folder, "istio/keys.yaml"), "utf8").match(/^# {3}.*$/gm)!;
    const [provider] = parse(comment.map((line) => line.slice(4)).join("\n")).extensionProviders;
    const messages = readFileSync(join(istio, "mesh/v1alpha1/config.proto"), "utf8");
    const message = /message EnvoyExternalAuthorizationGrpcProvider \{([\s\S]*?)\n {4}\}/.exec(messages)![1]!;
    for (const member of Object.keys(provider.envoyExtAuthzGrpc)) {
      const field = member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      assert.match(message, new RegExp(`\\b${field} = \\d+;`), member);
    }
  });
});

/** A schema in which objects have no members but those that it names, as Kubernetes rejects or drops them. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] || schema.additionalProperties !== undefined;
  if (schema.type === "object" && schema.properties && !isOpen) copy.additionalProperties = false;
  return copy;
}
