import { z } from "zod";
import { asSecret, duration, KeyId } from "../../platform/vocabulary/schema.ts";
import type { DatabaseServices } from "../database-services.ts";
import { IdentityWriter } from "../identities/statements.ts";
import { rerollKey as reroll } from "../keys/rerollKey.ts";
import { limitedMutation } from "../services.ts";
import { admitOwnersKey, callerWith, countForOwner, countOwnKeys, lockOwnKey } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";

const WEEK = 7 * 24 * 3_600_000;

export const rerollKey = limitedMutation("portal.rerollKey", {
  audience: PORTAL,
  summary: "Replace a key of the owner by a new one with the same settings",
  description: "",
  permissions: ["apis.{apiId}.create_key", "apis.{apiId}.encrypt_key"],
  input: z.strictObject({
    keyId: KeyId,
    expiration: duration(0, WEEK).describe("How long the old key stays valid, in milliseconds: at most a week."),
  }),
  output: z.strictObject({ keyId: z.string(), key: asSecret(z.string()) }),
  problems: ["key_not_found", "precondition_failed", "maximum_reached"],
  examples: [],
})
  .admit(admitOwnersKey)
  .handle(async (input, context, services: DatabaseServices) => {
    const { store, principal, now, fail } = context;
    const caller = callerWith("reroll", principal);
    // The owner first, as `portal.createKey` locks it before any key.
    await store.of(IdentityWriter).lock(caller.identityId);
    if (!(await lockOwnKey(input.keyId, caller, store))) return fail("key_not_found");
    const { max } = caller.terms.keys;
    // The old key makes room for the new one. While it stays valid, there may be one key more than the maximum.
    if (input.expiration > 0 && (await countOwnKeys(caller, store, now)) > max) {
      return fail(
        "maximum_reached",
        `There are more than ${max} keys, which is the maximum. Let the old key end at once, or delete another one.`,
      );
    }
    const made = (await reroll.handle(input, context)) as { keyId: string; key: string };
    await countForOwner(made.keyId, caller, context, services);
    return made;
  });
