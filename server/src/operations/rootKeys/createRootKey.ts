import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleRootKey, exampleRootKeyInput, exampleRootKeySecret } from "../examples.ts";
import { Expires, Name } from "../schema.ts";
import { canonical, IssuedOutput, Permissions } from "./record.ts";

export const createRootKey = mutation("rootKeys.createRootKey", {
  summary: "Create a root key",
  description:
    "A root key is what a program calls this service with. Give each program its own, with no more permissions than it " +
    "needs. Nobody can hand out what they don't have: the root key of the call needs every permission of the new one.",
  idempotent: true,
  permissions: ["rootKeys.*.create_root_key"],
  input: z.strictObject({
    name: Name,
    permissions: Permissions,
    expires: Expires.optional().describe("Unix time in milliseconds from which it is refused. Omitted: never."),
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
      summary: "A permission that there is not",
      input: { name: "typo", permissions: ["apis.*.make_key"] },
      problem: "invalid_input",
      detail: "POST request body for '/v2/rootKeys.createRootKey' failed to validate schema",
    },
  ],
}).handle(async ({ name, permissions, expires }, { store, principal, random, secrets, now, invalidate, audit }) => {
  principal.authorize("rootKeys.*.create_root_key");
  const grants = canonical(permissions);
  principal.authorizeGrants(grants);
  const issued = await store.rootKeys.issue({ name, grants, expiresAt: expires ?? null }, { random, secrets }, now);
  invalidate.rootKeyHash(issued.hash);
  audit([issued.rootKeyId], { name, permissions: grants, expires });
  return { rootKeyId: issued.rootKeyId, key: issued.key };
});
