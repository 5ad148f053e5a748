import { z } from "zod";
import type { NamespaceRecord } from "../../../../engine/src/directory/records.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { MeteredContext } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { metered, type Services } from "../services.ts";
import {
  EDGE_BODY_BYTES_MAX,
  Elsewhere,
  Hash,
  OPEN_PERMISSION,
  openingCaller,
  openRequirement,
  Position,
} from "./fields.ts";
import { replicaRootKey } from "./key-record.ts";
import { ELSEWHERE, NOT_HERE, type ReadRecord, readRecord } from "./read-records.ts";

const KEYS_MAX = 256;
/** What an edge looks up at once. */
const ROOT_KEYS_MAX = 128;
const NAMESPACES_MAX = 128;

/** How often a question is answered again because its root key has changed. */
const ATTEMPTS_MAX = 8;

const Limits = z.array(
  z.strictObject({
    id: z.string(),
    name: z.string(),
    limit: z.int(),
    duration: z.int(),
    mode: z.enum(["standard", "strict"]),
    auto_apply: z.union([z.literal(0), z.literal(1)]),
    shadow: z.union([z.literal(0), z.literal(1)]).optional(),
  }),
);

const ReplicaKey = z.strictObject({
  keyId: z.string(),
  apiId: z.string(),
  poolId: z.string(),
  name: z.string().nullable(),
  meta: z.string().nullable(),
  enabled: z.boolean(),
  workspaceEnabled: z.boolean(),
  expiresAt: z.int().nullable(),
  allowedIps: z.string().nullable(),
  apiAllowedIps: z.string().nullable(),
  identity: z
    .strictObject({ id: z.string(), externalId: z.string(), meta: z.string().nullable(), ratelimits: Limits })
    .nullable(),
  ratelimits: Limits,
  roles: z.array(z.string()),
  permissions: z.array(z.string()),
  needs: z.array(z.string()).describe("What judging the key needs besides."),
});

const DeletedReplicaKey = z.strictObject({
  isDeleted: z.literal(true),
  keyId: z.string(),
  apiId: z.string(),
  identityId: z.string().nullable(),
});

const ReplicaRootKey = z.strictObject({
  rootKeyId: z.string(),
  grants: z.array(z.string()),
  enabled: z.boolean(),
  expiresAt: z.int().nullable(),
  workspaceEnabled: z.boolean(),
  requestsPerMinute: z.int().nullable(),
});

const Input = z.strictObject({
  position: Position.optional().describe("The position of the edge. The answer knows all that it has."),
  keys: z.array(Hash).max(KEYS_MAX).optional(),
  rootKeys: z.array(Hash).max(ROOT_KEYS_MAX).optional(),
  namespaces: z.array(text(1, 512)).max(NAMESPACES_MAX).optional().describe("Names or ids of rate limit namespaces."),
  workspace: z.boolean().optional(),
});

type Question = z.output<typeof Input>;

export const resolveKeys = metered("replica.resolveKeys", {
  summary: "Get the records of keys for an edge",
  description: "Gives what an edge needs to judge keys and root keys, found by the hashes of their strings.",
  repeatable: true,
  bodyBytesMax: EDGE_BODY_BYTES_MAX,
  permissions: [OPEN_PERMISSION],
  input: Input,
  output: z.strictObject({
    keys: z.array(z.union([ReplicaKey, DeletedReplicaKey, Elsewhere]).nullable()),
    rootKeys: z.array(z.union([ReplicaRootKey, Elsewhere]).nullable()),
    namespaces: z.array(z.union([z.strictObject({ namespaceId: z.string() }), Elsewhere]).nullable()),
    workspace: z
      .strictObject({
        id: z.string(),
        enabled: z.boolean(),
        hasImportedKeys: z.boolean(),
        hasSha512Keys: z.boolean(),
        hasUpstreams: z.boolean(),
      })
      .optional(),
  }),
  problems: [],
  examples: [],
}).handle((question, services, context) => resolve(question, services, context));

async function resolve(
  question: Question,
  services: Pick<Services, "replicas" | "namespaces">,
  context: MeteredContext<never>,
  attempt = 1,
): Promise<string> {
  const { replicas, namespaces: found } = services;
  const { position, keys = [], rootKeys = [], namespaces = [], workspace } = question;
  const caller = openingCaller(context);
  const { workspaceId, clock } = context;
  const { source, lookups, resolving } = replicas;
  const answer = await resolving.run(workspaceId, async () => {
    // After the wait: the answer must be newer than the position. Without one, nothing says what a kept record must have.
    const isKnown = await replicas.stream.reach(position);
    const kept = isKnown ? replicas.records.current(workspaceId) : undefined;
    const records = new Map(keys.map((hash) => [hash, kept?.get(hash)]));
    const sought = [...records.keys()].filter((hash) => records.get(hash) === undefined);
    const share = await lookups.begin(caller.rootKeyId);
    let unknown = 0;
    try {
      const locations = sought.map((hash) => ({ hash, workspace_id: workspaceId }));
      const [rows, derived, foundRootKeys, foundNamespaces, workspaces] = await Promise.all([
        locations.length === 0 ? [] : source.keysAt(locations),
        locations.length === 0 ? [] : source.derivedKeysAt(locations),
        rootKeys.length === 0 ? [] : source.rootKeysByHashes([...new Set(rootKeys)]),
        // From memory, which has what the position has.
        Promise.all(namespaces.map((name) => found.find(name, workspaceId))),
        workspace ? source.workspaces([workspaceId]) : [],
      ]);
      const byHash = Map.groupBy(rows, ({ hash }) => hash);
      const ofDerived = new Set(derived.map(({ hash }) => hash));
      for (const hash of sought) {
        const record = readRecord(byHash.get(hash) ?? [], ofDerived.has(hash));
        if (record === undefined) continue;
        records.set(hash, record);
        kept?.set(hash, record);
      }
      const foundKeys = keys.map((hash) => records.get(hash));
      const rootKeyOf = new Map(foundRootKeys.map((rootKey) => [rootKey.hash, rootKey]));
      const answeredRootKeys = rootKeys.map((hash) => {
        const rootKey = rootKeyOf.get(hash);
        if (rootKey === undefined) return null;
        return rootKey.workspace_id === workspaceId ? replicaRootKey(rootKey) : ELSEWHERE;
      });
      unknown =
        foundKeys.filter((one) => one === undefined).length + answeredRootKeys.filter((one) => one === null).length;
      const own = workspaces[0];
      const rest = JSON.stringify({
        rootKeys: answeredRootKeys,
        namespaces: foundNamespaces.map((namespace) => namespace && namespaceIn(namespace, caller)),
        ...(own && {
          workspace: {
            id: own.id,
            enabled: own.enabled === 1,
            hasImportedKeys: own.has_imported_keys === 1,
            hasSha512Keys: own.sha512_migrations > 0,
            hasUpstreams: own.upstream_apis.length > 0,
          },
        }),
      });
      return `{"keys":[${foundKeys.map((record) => jsonIn(record, caller)).join()}],${rest.slice(1)}`;
    } finally {
      lookups.end(share, unknown);
    }
  });
  const now = clock.now();
  const principal = await caller.renewIfChanged(now);
  if (principal === caller) return answer;
  // What it may have can be less than before.
  if (attempt === ATTEMPTS_MAX) throw new StoreUnavailable("The root key changed faster than its keys could be read");
  return resolve(question, services, { ...context, now, principal }, attempt + 1);
}

/** What an edge gets of a key, as JSON. */
function jsonIn(record: ReadRecord | undefined, caller: Principal): string {
  if (record === undefined) return "null";
  const isOpen = record.apiId === null || caller.may(openRequirement(record.apiId));
  return (isOpen ? record : NOT_HERE).json;
}

/** What an edge gets of a namespace. Overrides are applied here. */
function namespaceIn({ namespaceId, limitRequirement }: NamespaceRecord, caller: Principal) {
  return caller.may(limitRequirement) ? { namespaceId } : ELSEWHERE;
}
