import { z } from "zod";
import { type MutationContext, mutation } from "../../platform/rpc/operation.ts";
import { changedValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf, flag, jsonColumn } from "../../platform/vocabulary/columns.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import {
  AllowedIps,
  ApiId,
  ByteLength,
  Empty,
  Name,
  OwnKeyAccess,
  OwnKeyDerivation,
  Prefix,
  Resources,
} from "../../platform/vocabulary/schema.ts";
import type { DatabaseServices } from "../database-services.ts";
import { NOTICE_DAYS } from "../events/statements/expiry-sweep.ts";
import { OLDER_PROGRAMS_OF_POLICIES } from "../keys/policy.ts";
import { VAULT_MISSING } from "../keys/record.ts";
import { KeyMigrationWriter } from "../keys/statements/key-migrations.ts";
import { ApiPortalInput, apiPortalRequirements } from "../portal/record.ts";
import { type StoredUpstream, shownUpstream, toUpstreamOutput, UpstreamInput } from "../upstreams/record.ts";
import { PolicyInput } from "./record.ts";
import { ApiWriter } from "./statements.ts";

export const updateApi = mutation("apis.updateApi", {
  summary: "Update an API",
  description:
    "Omitted fields do not change. Null removes a value. `prefix` and `byteLength` are defaults for keys that are " +
    "created without these fields. If an API has `allowedIps`, verifications from other addresses answer FORBIDDEN.",
  permissions: ["apis.{apiId}.update_api", "apis.{apiId}.create_key"],
  input: z.strictObject({
    apiId: ApiId,
    name: Name.optional(),
    prefix: Prefix.nullable().optional().describe("Default prefix of new keys; an underscore follows it."),
    byteLength: ByteLength.nullable().optional().describe("Default number of random bytes in new keys. Null: 16."),
    deleteProtection: z.boolean().optional().describe("Whether to prevent `apis.deleteApi`."),
    allowedIps: AllowedIps.nullable()
      .optional()
      .describe("IPv4 and IPv6 addresses and CIDRs that may use its keys. Null: every address."),
    leakAction: z
      .enum(["mark", "disable"])
      .optional()
      .describe(
        "What happens to a key that is reported as leaked. `mark`, the default: it gets `leakedAt` and still verifies. " +
          "`disable`: it is disabled too.",
      ),
    expiryNotices: z
      .array(z.literal(NOTICE_DAYS).meta({ type: "integer" }))
      .max(NOTICE_DAYS.length)
      .nullable()
      .optional()
      .describe("The days before the expiry of a key at which it has an event `key.expiring`. Null: 7 and 1."),
    upstream: UpstreamInput.nullable()
      .optional()
      .describe(
        "An HTTP endpoint of another system that is asked once about each key that is unknown here. A key that it knows is " +
          "created here. Needs `create_key` too. Null: none.",
      ),
    ownKeyAccess: OwnKeyAccess.optional(),
    resources: Resources.nullable().optional(),
    ownKeyDerivation: OwnKeyDerivation.optional(),
    policy: PolicyInput.nullable().optional(),
    portal: ApiPortalInput.nullable()
      .optional()
      .describe(
        "What sessions of the portal inherit unless they say otherwise. It is set as a whole. The root key needs the " +
          "permission of each action. Null: nothing.",
      ),
  }),
  output: Empty,
  problems: ["api_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Set defaults for keys, and delete protection",
      input: { apiId: exampleApi.apiId, prefix: "prod", byteLength: 32, deleteProtection: true },
      output: {},
    },
    {
      summary: "Allow two networks",
      input: { apiId: exampleApi.apiId, allowedIps: ["198.51.100.0/24", "2001:db8::/32"] },
      output: {},
    },
    { summary: "Disable leaked keys", input: { apiId: exampleApi.apiId, leakAction: "disable" }, output: {} },
    {
      summary: "Report keys 30 days and 7 days before they expire",
      input: { apiId: exampleApi.apiId, expiryNotices: [30, 7] },
      output: {},
    },
    {
      summary: "Ask another system about unknown keys",
      input: {
        apiId: exampleApi.apiId,
        upstream: { url: "https://old.example.com/verify", timeout: 1_000, onOutage: "not_found" },
      },
      output: {},
    },
    {
      summary: "An upstream verifier at an address that is not public",
      input: { apiId: exampleApi.apiId, upstream: { url: "https://127.0.0.1/verify" } },
      problem: "invalid_input",
      detail: "`upstream.url` must be a public address.",
    },
    {
      summary: "Set how the portal looks and what its sessions may do",
      input: {
        apiId: exampleApi.apiId,
        portal: {
          actions: ["list", "create", "reroll", "usage"],
          page: { name: "Acme Documents", logoUrl: "https://acme.example/logo.svg", color: "#246bce" },
        },
      },
      output: {},
    },
    { summary: "Let holders read their keys", input: { apiId: exampleApi.apiId, ownKeyAccess: true }, output: {} },
    {
      summary: "Let keys get access tokens",
      input: { apiId: exampleApi.apiId, resources: ["https://api.example.com"] },
      output: {},
    },
    { summary: "Let holders derive keys", input: { apiId: exampleApi.apiId, ownKeyDerivation: true }, output: {} },
    {
      summary: "Let new keys live for at most 90 days, and require a limit",
      input: { apiId: exampleApi.apiId, policy: { expiry: { max: 7_776_000_000 }, limitsRequired: true } },
      output: {},
    },
    { summary: "Allow every address", input: { apiId: exampleApi.apiId, allowedIps: null }, output: {} },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM", name: "Documents" },
      problem: "api_not_found",
    },
  ],
}).handle(async ({ apiId, upstream, ...changed }, context, services: DatabaseServices) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  principal.authorize(`apis.${apiId}.update_api`);
  const apis = store.of(ApiWriter);
  const api = await apis.find(apiId);
  if (!api) return fail("api_not_found");
  if (Object.keys(changed).length === 0 && upstream === undefined) return {};
  // Sessions that others create inherit these actions.
  for (const needed of apiPortalRequirements(changed.portal, apiId)) principal.authorize(needed);
  if (!(await apis.accepts(changed.policy))) return fail("precondition_failed", OLDER_PROGRAMS_OF_POLICIES);
  const stored = upstream && (await storedUpstream(apiId, upstream, context, services));

  const settings = { ...changed, upstream: stored };
  const columns = columnsOf(settings, {
    name: (name) => ({ name }),
    prefix: (prefix) => ({ prefix }),
    byteLength: (byteLength) => ({ byte_length: byteLength }),
    deleteProtection: (isProtected) => ({ delete_protection: flag(isProtected) }),
    allowedIps: (allowedIps) => ({ allowed_ips: jsonColumn(allowedIps) }),
    leakAction: (leakAction) => ({ leak_action: leakAction }),
    expiryNotices: (days) => ({ expiry_notices: jsonColumn(days) }),
    upstream: (upstream) => ({ upstream: jsonColumn(upstream) }),
    ownKeyAccess: (hasAccess) => ({ own_key_access: flag(hasAccess) }),
    resources: (resources) => ({ resources: jsonColumn(resources) }),
    ownKeyDerivation: (mayDerive) => ({ own_key_derivation: flag(mayDerive) }),
    policy: (policy) => ({ policy: jsonColumn(policy) }),
    portal: (portal) => ({ portal: jsonColumn(portal) }),
  } satisfies ColumnsFor<typeof settings>);
  await apis.update(apiId, columns, now);
  invalidate.api(apiId);
  if (stored !== undefined) {
    // Cached workspace records name the APIs with a verifier, and say whether every key ends in a checksum.
    invalidate.workspace(principal.workspaceId);
    if (stored) await store.of(KeyMigrationWriter).recordImport(now);
  }
  const former = {
    name: api.name,
    prefix: api.prefix,
    byteLength: api.byte_length,
    deleteProtection: api.delete_protection === 1,
    allowedIps: api.allowed_ips && JSON.parse(api.allowed_ips),
    leakAction: api.leak_action ?? "mark",
    expiryNotices: api.expiry_notices && JSON.parse(api.expiry_notices),
    upstream: api.upstream && toUpstreamOutput(api.upstream),
    ownKeyAccess: api.own_key_access === 1,
    resources: api.resources && JSON.parse(api.resources),
    ownKeyDerivation: api.own_key_derivation === 1,
    policy: api.policy && JSON.parse(api.policy),
    portal: api.portal && JSON.parse(api.portal),
  };
  const after = { ...changed, ...(stored !== undefined && { upstream: stored && shownUpstream(stored) }) };
  const differing = changedValues(after, former);
  const data = { apiId, name: changed.name ?? api.name };
  audit([apiId], { ...after, ...differing }, updateEvents("api", apiId, data, differing.after));
  return {};
});

/** Every unknown key of the workspace is asked about at each of them, one after the other. */
const UPSTREAMS_PER_WORKSPACE_MAX = 5;

/** A verifier as it is stored: with the values of its headers sealed. */
async function storedUpstream(
  apiId: string,
  { headers, ...upstream }: z.output<typeof UpstreamInput>,
  { store, principal, vault, fail }: MutationContext<"precondition_failed">,
  { upstreams }: Pick<DatabaseServices, "upstreams">,
): Promise<StoredUpstream> {
  principal.authorize(`apis.${apiId}.create_key`);
  const fault = upstreams.findUrlFault(upstream.url);
  if (fault !== undefined) fail("invalid_input", `\`upstream.url\` ${fault}.`);
  if ((await store.of(ApiWriter).countOtherUpstreams(apiId)) >= UPSTREAMS_PER_WORKSPACE_MAX) {
    return fail(
      "precondition_failed",
      `${UPSTREAMS_PER_WORKSPACE_MAX} APIs of a workspace can have an upstream verifier.`,
    );
  }
  if (headers.length > 0 && !vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
  const sealed = headers.length > 0 ? await vault.sealHeaders(apiId, JSON.stringify(headers)) : null;
  return { ...upstream, headers: headers.map(({ name }) => name), sealed };
}
