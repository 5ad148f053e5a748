import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleRootKey, exampleRootKeyInput, exampleRootKeySecret } from "../../platform/vocabulary/examples.ts";
import { Expires, Name } from "../../platform/vocabulary/schema.ts";
import { canonicalGrants, IssuedOutput, LeakActionInput, RootKeyPermissions } from "./record.ts";
import { RootKeyWriter } from "./statements.ts";

export const createRootKey = mutation("rootKeys.createRootKey", {
  summary: "Create a root key",
  description:
    "A root key authenticates a program to this service. Give each program a root key of its own, with only the " +
    "permissions that it needs. The calling root key must have every permission of the new one.",
  idempotent: true,
  issues: ({ rootKeyId }) => rootKeyId,
  permissions: ["rootKeys.*.create_root_key"],
  input: z.strictObject({
    name: Name,
    permissions: RootKeyPermissions,
    expires: Expires.optional().describe("Unix time in milliseconds at which it expires. Omitted: never."),
    leakAction: LeakActionInput.optional(),
  }),
  output: z.strictObject(IssuedOutput),
  problems: [],
  examples: [
    {
      summary: "A root key for a program that creates keys",
      input: exampleRootKeyInput,
      output: { rootKeyId: exampleRootKey.rootKeyId, key: exampleRootKeySecret },
    },
    {
      summary: "A permission that does not exist",
      input: { name: "typo", permissions: ["apis.*.make_key"] },
      problem: "invalid_input",
      detail: "POST request body for '/v2/rootKeys.createRootKey' failed to validate schema",
    },
  ],
}).handle(
  async ({ name, permissions, expires, leakAction }, { store, principal, random, secrets, now, invalidate, audit }) => {
    principal.authorize("rootKeys.*.create_root_key");
    const grants = canonicalGrants(permissions);
    principal.authorizeGrants(grants);
    const rootKeys = store.of(RootKeyWriter);
    const issued = await rootKeys.issue(
      { name, grants, expiresAt: expires ?? null, createdBy: principal.rootKeyId, leakAction },
      { random, secrets },
      now,
    );
    invalidate.rootKeyHash(issued.hash);
    const { rootKeyId } = issued;
    audit([rootKeyId], { name, permissions: grants, expires, leakAction }, [
      { type: "root_key.created", objectId: rootKeyId, data: { rootKeyId, name } },
    ]);
    return { rootKeyId: issued.rootKeyId, key: issued.key };
  },
);
