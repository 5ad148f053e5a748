import { z } from "zod";
import { exampleDerivedKey, exampleDerivedSecret, exampleSecret } from "../../platform/vocabulary/examples.ts";
import { asSecret, text } from "../../platform/vocabulary/schema.ts";
import { metered } from "../services.ts";
import { DerivedOutput, derivationFields } from "./derivation.ts";

export const deriveOwnKey = metered("keys.deriveOwnKey", {
  summary: "Derive a key from the key that you hold",
  description:
    "For the holder of a key, without a root key: the same as `keys.deriveKey`, with the key as the credential. It works only " +
    "for valid keys of APIs with `ownKeyDerivation`; every other string is answered alike with 404. Without a root key, keys " +
    "of the default workspace are found; a root key finds those of its workspace, and needs `create_key`.",
  permissions: ["apis.{apiId}.create_key"],
  isPublic: true,
  input: z.strictObject({
    key: asSecret(text(1, 512)).describe("The key string: that of a key, or of a derived key."),
    ...derivationFields,
  }),
  output: DerivedOutput,
  problems: ["key_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Without write permissions, for ten minutes",
      input: { key: exampleSecret, ttl: 600_000, permissions: ["documents.read"] },
      output: { keyId: exampleDerivedKey.keyId, key: exampleDerivedSecret, expires: exampleDerivedKey.expires },
    },
    {
      summary: "A string that is no key, or the key of an API that lets no holder derive",
      input: { key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp", ttl: 600_000 },
      problem: "key_not_found",
    },
  ],
}).handle(
  async (
    { key: secret, ...wanted },
    { ownKeys, derivations },
    { principal, workspaceId, address, requestId, now, startedAt, fail },
  ) => {
    const parent = await ownKeys.findParent({
      key: secret,
      workspaceId,
      principal,
      address,
      requestId,
      now,
      startedAt,
    });
    if (parent === null) return fail("key_not_found");
    return JSON.stringify(await derivations.derive(parent, wanted, principal));
  },
);
