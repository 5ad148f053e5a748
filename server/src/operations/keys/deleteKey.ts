import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleKey } from "../examples.ts";
import { Empty, KeyId } from "../schema.ts";

export const deleteKey = mutation("keys.deleteKey", {
  summary: "Delete a key",
  description:
    "From the next verification on it is not found. Its row stays for the records, unless `permanent` is asked for: " +
    "then the key goes with its limits, roles, permissions and stored secret.",
  permissions: ["apis.{apiId}.delete_key"],
  input: z.strictObject({ keyId: KeyId, permanent: z.boolean().default(false) }),
  output: Empty,
  problems: ["key_not_found"],
  examples: [
    { summary: "Delete a key", input: { keyId: exampleKey.keyId }, output: {} },
    { summary: "Delete a key and its records", input: { keyId: exampleKey.keyId, permanent: true }, output: {} },
    { summary: "A key that is not there", input: { keyId: "key_IXIyFsB89IXl4uYc" }, problem: "key_not_found" },
  ],
}).handle(async ({ keyId, permanent }, { store, principal, now, invalidate, audit, fail }) => {
  const key = await store.keys.findForUpdate(keyId);
  if (!key) return fail("key_not_found");
  principal.authorize(`apis.${key.api_id}.delete_key`);
  await (permanent ? store.keys.erase(keyId, key.pool_id) : store.keys.markDeleted(keyId, now));
  invalidate.key(keyId);
  audit([keyId, key.api_id], { permanent });
  return {};
});
