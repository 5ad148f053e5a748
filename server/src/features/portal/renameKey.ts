import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { Empty, KeyId, KeyName } from "../../platform/vocabulary/schema.ts";
import { updateKey } from "../keys/updateKey.ts";
import { callerWith, lockOwnKey } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";

export const renameKey = mutation("portal.renameKey", {
  audience: PORTAL,
  summary: "Rename a key of the owner",
  description: "",
  permissions: ["apis.{apiId}.update_key"],
  input: z.strictObject({ keyId: KeyId, name: KeyName.nullable().describe("Null: without a name.") }),
  output: Empty,
  problems: ["key_not_found", "role_not_found"],
  examples: [],
}).handle(async ({ keyId, name }, context) => {
  const caller = callerWith("rename", context.principal);
  if (!(await lockOwnKey(keyId, caller, context.store))) return context.fail("key_not_found");
  await updateKey.handle({ keyId, name }, context);
  return {};
});
