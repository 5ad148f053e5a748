import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleDerivedKey, exampleDerivedSecret, exampleKey } from "../../platform/vocabulary/examples.ts";
import { KeyId } from "../../platform/vocabulary/schema.ts";
import type { DatabaseServices } from "../database-services.ts";
import { DerivedOutput, derivationFields, derive } from "./derivation.ts";

export const deriveKey = mutation("keys.deriveKey", {
  summary: "Derive a key",
  description:
    "Makes a short-lived key that can do less than its parent, for an agent, a job or a browser. Whatever its parent has is " +
    "judged at each verification: the derived key is charged to the limits, credits and budgets of its parent, has no " +
    "permission that its parent lacks, and ends with its parent. Derived keys can be derived from too, up to three levels. " +
    "They are not in `apis.listKeys`: `keys.listDerivedKeys` lists them, and `keys.deleteKey` ends one.",
  idempotent: true,
  issues: ({ keyId }) => keyId,
  permissions: ["apis.{apiId}.create_key"],
  input: z.strictObject({
    keyId: KeyId.describe("The key, or the derived key, to derive from."),
    ...derivationFields,
  }),
  output: DerivedOutput,
  problems: ["key_not_found", "precondition_failed"],
  examples: [
    {
      summary: "For an agent, for an hour",
      input: {
        keyId: exampleKey.keyId,
        ttl: 3_600_000,
        permissions: ["documents.read"],
        ratelimits: [{ name: "agent", limit: 10, duration: 60_000 }],
        credits: { max: 500 },
        meta: { agent: "research" },
      },
      output: { keyId: exampleDerivedKey.keyId, key: exampleDerivedSecret, expires: exampleDerivedKey.expires },
    },
    {
      summary: "A key that does not exist",
      input: { keyId: "key_IXIyFsB89IXl4uYc", ttl: 3_600_000 },
      problem: "key_not_found",
    },
  ],
}).handle(async (input, context, { derivedKeys: bounds }: Pick<DatabaseServices, "derivedKeys">) => {
  const { store, random, secrets, now, principal, invalidate, audit } = context;
  const authorize = (apiId: string) => principal.authorize(`apis.${apiId}.create_key`);
  const made = await derive({ ...input, byHolder: false }, { store, random, secrets, now, authorize, bounds });
  invalidate.nothing("no caller can have asked for a new random string");
  audit(made.targets, made.meta, made.events);
  return made.answer;
});
