import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { Empty, KeyId } from "../../platform/vocabulary/schema.ts";
import { deleteKey as remove } from "../keys/deleteKey.ts";
import { DerivedKeyWriter } from "../keys/statements/derived-keys.ts";
import { callerWith, lockOwnKey } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";

export const deleteKey = mutation("portal.deleteKey", {
  audience: PORTAL,
  summary: "Delete a key of the owner, or end one that was derived of it",
  description: "",
  permissions: ["apis.{apiId}.delete_key"],
  input: z.strictObject({ keyId: KeyId }),
  output: Empty,
  problems: ["key_not_found"],
  examples: [],
}).handle(async ({ keyId }, context) => {
  const caller = callerWith("delete", context.principal);
  // Its row is locked before that of what was derived of it, as everywhere.
  const topId = (await context.store.of(DerivedKeyWriter).find(keyId))?.top_id ?? keyId;
  if (!(await lockOwnKey(topId, caller, context.store))) return context.fail("key_not_found");
  await remove.handle({ keyId, permanent: false }, context);
  return {};
});
