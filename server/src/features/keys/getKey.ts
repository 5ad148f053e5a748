import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import { KeyId } from "../../platform/vocabulary/schema.ts";
import { SlotReader } from "../credits/statements/slots.ts";
import { KeyOutput, slotsOfKey, toKeyOutput, VAULT_MISSING } from "./record.ts";
import { KeyReader } from "./statements/keys.ts";
import { rejectMissing } from "./statements/missing-key.ts";

export const getKey = query("keys.getKey", {
  summary: "Get a key",
  description:
    "Returns the key without its key string. With `decrypt`, a recoverable key includes the key string. " +
    "A key that was deleted without `permanent` is kept for a while (`LATCHKEY_RETENTION_DELETED`): `deleted` returns it, and " +
    "`keys.restoreKey` restores it.",
  permissions: ["apis.{apiId}.read_key", "apis.{apiId}.decrypt_key"],
  input: z.strictObject({
    keyId: KeyId,
    decrypt: z.boolean().default(false).describe("Whether to return the `plaintext` of a recoverable key."),
    deleted: z
      .boolean()
      .default(false)
      .describe("Whether to return the key although it is deleted, then with `deletedAt` and without `plaintext`."),
  }),
  output: KeyOutput,
  problems: ["key_not_found", "precondition_failed"],
  examples: [
    { summary: "Get a key", input: { keyId: exampleKey.keyId }, output: exampleKey },
    { summary: "A key that does not exist", input: { keyId: "key_IXIyFsB89IXl4uYc" }, problem: "key_not_found" },
  ],
}).handle(async ({ keyId, decrypt, deleted }, { store, vault, principal, now, fail }) => {
  const keys = store.of(KeyReader);
  const key = await (deleted ? keys.findAny(keyId) : keys.find(keyId));
  if (!key) return rejectMissing(keyId, "read_key", { store, principal, fail });
  principal.authorize(`apis.${key.api_id}.read_key`);
  const slots = await store.of(SlotReader).inUse(slotsOfKey(key));
  const credits = (await keys.creditsOf([key], now)).get(keyId);
  if (!decrypt || key.deleted_at !== null) return toKeyOutput(key, { credits, slots });
  if (!vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
  principal.authorize(`apis.${key.api_id}.decrypt_key`);
  return toKeyOutput(key, { credits, slots, plaintext: (await vault.reveal([keyId])).get(keyId) });
});
