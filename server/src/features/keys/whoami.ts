import { z } from "zod";
import { hashSecret, hashSecret512 } from "../../../../engine/src/crypto/hash.ts";
import { query } from "../../platform/rpc/operation.ts";
import { exampleKey, exampleSecret } from "../../platform/vocabulary/examples.ts";
import { asSecret, KEY_LENGTH_MAX, text } from "../../platform/vocabulary/schema.ts";
import { KeyOutput, toKeyOutput } from "./record.ts";
import { DerivedKeyReader } from "./statements/derived-keys.ts";
import { KeyReader } from "./statements/keys.ts";
import { rejectMissing } from "./statements/missing-key.ts";

export const whoami = query("keys.whoami", {
  summary: "Get a key by its key string",
  description: "Finds a key without verifying it. Nothing is charged, and a disabled or expired key is returned too.",
  permissions: ["apis.{apiId}.read_key"],
  input: z.strictObject({ key: asSecret(text(1, KEY_LENGTH_MAX)).describe("The key string.") }),
  output: KeyOutput,
  problems: ["key_not_found"],
  examples: [
    { summary: "Find a key", input: { key: exampleSecret }, output: exampleKey },
    {
      summary: "A key string that does not exist",
      input: { key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp" },
      problem: "key_not_found",
    },
  ],
}).handle(async ({ key: secret }, { store, principal, now, fail }) => {
  const hash = hashSecret(secret);
  const keys = store.of(KeyReader);
  const key = await keys.findByHashes([hash, hashSecret512(secret)]);
  if (!key) {
    const derived = await store.of(DerivedKeyReader).findByHash(hash);
    const top = derived && (await keys.find(derived.top_id));
    if (top && principal.may(`apis.${top.api_id}.read_key`)) {
      return rejectMissing(derived.id, "read_key", { store, principal, fail });
    }
  }
  // A key that the caller may not read must look like one that does not exist.
  if (!key || !principal.may(`apis.${key.api_id}.read_key`)) return fail("key_not_found");
  return toKeyOutput(key, { credits: (await keys.creditsOf([key], now)).get(key.id) });
});
