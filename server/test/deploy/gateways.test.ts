/**
 * The recipes in deploy/gateways/: the filters that they patch in are those of deploy/proxies/envoy/, which the real Envoy runs
 * in other tests.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { repository } from "./tools.ts";

// biome-ignore lint/suspicious/noExplicitAny: resources of Kubernetes, whose shapes are what is tested.
type Json = any;

const folder = join(repository, "deploy/gateways");
const resourcesOf = (recipe: string): Json[] =>
  parseAllDocuments(readFileSync(join(folder, recipe), "utf8")).map((document) => document.toJS());

/** The HTTP filter of this kind, and what the virtual host has, in the configuration that Envoy runs. */
function proven(file: string): { filter: Json; host: Json } {
  const { static_resources } = parse(readFileSync(join(repository, "deploy/proxies/envoy", file), "utf8"));
  const manager = static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
  return { filter: manager.http_filters[0], host: manager.route_config.virtual_hosts[0] };
}

describe("recipes for gateways", () => {
  it("limit requests by the filter that Envoy runs", () => {
    const { filter, host } = proven("rate-limits.yaml");
    const { rate_limits } = host.routes[0].route;
    const [gateway] = resourcesOf("envoy-gateway/rate-limits.yaml");
    const [ofListener, ofRoutes, ofCluster] = gateway.spec.jsonPatches.map((patch: Json) => patch.operation.value);
    assert.deepEqual(ofListener, filter);
    assert.deepEqual(ofRoutes, rate_limits);
    assert.equal(ofCluster.name, filter.typed_config.rate_limit_service.grpc_service.envoy_grpc.cluster_name);
    const [istio] = resourcesOf("istio/rate-limits.yaml");
    const [patched, merged] = istio.spec.configPatches.map(({ patch }: Json) => patch.value);
    const { grpc_service } = patched.typed_config.rate_limit_service;
    assert.match(grpc_service.envoy_grpc.cluster_name, /^outbound\|50051\|\|latchkey\./);
    grpc_service.envoy_grpc.cluster_name = "latchkey";
    assert.deepEqual(patched, filter);
    assert.deepEqual(merged.rate_limits, rate_limits);
  });

  it("ask for keys as Envoy does", () => {
    const { filter, host } = proven("envoy-grpc.yaml");
    const { grpc_service, encode_raw_headers, failure_mode_allow } = filter.typed_config;
    const perRoute = host.typed_per_filter_config["envoy.filters.http.ext_authz"];
    const [policy, patch] = resourcesOf("envoy-gateway/keys.yaml");
    const { extAuth } = policy.spec;
    assert.deepEqual([extAuth.failOpen, extAuth.timeout], [failure_mode_allow, grpc_service.timeout]);
    const extensions = extAuth.contextExtensions.map(({ name, value }: Json) => [name, value]);
    assert.deepEqual(Object.fromEntries(extensions), perRoute.check_settings.context_extensions);
    const name = `envoy.filters.http.ext_authz/securitypolicy/${policy.metadata.namespace}/${policy.metadata.name}`;
    const operations = patch.spec.jsonPatches.map(({ operation }: Json) => operation);
    for (const { jsonPath } of operations) assert(jsonPath.includes(`'${name}'`), jsonPath);
    assert.deepEqual(
      operations.map(({ path, value }: Json) => [path, value]),
      [
        ["/initial_metadata", grpc_service.initial_metadata],
        ["/encode_raw_headers", encode_raw_headers],
      ],
    );
    const [, istio] = resourcesOf("istio/keys.yaml");
    const [ofFilter, ofHost] = istio.spec.configPatches.map((one: Json) => one.patch.value);
    assert.deepEqual(ofFilter.typed_config.grpc_service.initial_metadata, grpc_service.initial_metadata);
    assert.equal(ofFilter.typed_config.encode_raw_headers, encode_raw_headers);
    assert.deepEqual(ofHost.typed_per_filter_config["envoy.filters.http.ext_authz"], perRoute);
  });
});
