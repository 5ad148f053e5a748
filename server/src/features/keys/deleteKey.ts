import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import { Empty, KeyId } from "../../platform/vocabulary/schema.ts";
import { endDerivedKey } from "./derived.ts";
import { keyInEvents, lockKey } from "./lock-key.ts";
import { KeyWriter } from "./statements/keys.ts";

export const deleteKey = mutation("keys.deleteKey", {
  summary: "Delete a key",
  description:
    "The next verification on the same node answers NOT_FOUND. The key stays in the database for " +
    "`LATCHKEY_RETENTION_DELETED`, by default 90 days, in which `keys.restoreKey` restores it. With `permanent`, the key is erased together with its limits, roles, permissions, derived keys and encrypted key string. " +
    "What was derived of a key ends with it. A derived key ends with all that was derived of it, and cannot be restored.",
  permissions: ["apis.{apiId}.delete_key"],
  input: z.strictObject({ keyId: KeyId, permanent: z.boolean().default(false).describe("Whether to erase the key.") }),
  output: Empty,
  problems: ["key_not_found"],
  examples: [
    { summary: "Delete a key", input: { keyId: exampleKey.keyId }, output: {} },
    { summary: "Delete a key permanently", input: { keyId: exampleKey.keyId, permanent: true }, output: {} },
    { summary: "A key that does not exist", input: { keyId: "key_IXIyFsB89IXl4uYc" }, problem: "key_not_found" },
  ],
}).handle(async ({ keyId, permanent }, context) => {
  const { store, now, invalidate, audit } = context;
  if (await endDerivedKey(keyId, context)) return {};
  const key = await lockKey(keyId, "delete_key", context);
  const keys = store.of(KeyWriter);
  await (permanent ? keys.erase(keyId, key.pool_id, now) : keys.markDeleted(keyId, now));
  invalidate.key(keyId);
  audit([keyId, key.api_id], { permanent }, [
    { type: "key.deleted", objectId: keyId, data: { ...keyInEvents(key), permanent } },
  ]);
  return {};
});
