import { z } from "zod";
import { endAfterReroll } from "../../../../engine/src/rules/expiry.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { grantsOf } from "../../platform/store/access/root-key-lookup.ts";
import { exampleRootKey } from "../../platform/vocabulary/examples.ts";
import { duration, EXPIRES_MAX, RootKeyId } from "../../platform/vocabulary/schema.ts";
import { lockRootKey } from "./lock-root-key.ts";
import { IssuedOutput } from "./record.ts";
import { RootKeyWriter } from "./statements.ts";

export const rerollRootKey = mutation("rootKeys.rerollRootKey", {
  summary: "Reroll a root key",
  description:
    "Creates a root key with the settings of the old one. The old root key expires after `expiration` milliseconds, " +
    "rounded up to a whole minute. With 0 it expires at once. The calling root key must have every permission of the " +
    "old one. The root key of the service's configuration can only be replaced there.",
  idempotent: true,
  issues: ({ rootKeyId }) => rootKeyId,
  narrowsAccess: true,
  permissions: ["rootKeys.{rootKeyId}.create_root_key"],
  input: z.strictObject({
    rootKeyId: RootKeyId,
    expiration: duration(0, EXPIRES_MAX).describe("How long the old root key stays valid, in milliseconds."),
  }),
  output: z.strictObject(IssuedOutput),
  problems: ["root_key_not_found", "protected_resource"],
  examples: [
    {
      summary: "The old root key stays valid for one hour",
      input: { rootKeyId: exampleRootKey.rootKeyId, expiration: 3_600_000 },
      output: { rootKeyId: "rk_h2JzPq8uVwX5bNtM", key: "lk_root_9iyiXJFwsaQWrzE5CchP6EvMBWjXzraKQ5zCFoY" },
    },
    {
      summary: "A root key that does not exist",
      input: { rootKeyId: "rk_Vb4nYk0sUoQ2rTzE", expiration: 0 },
      problem: "root_key_not_found",
    },
  ],
}).handle(async ({ rootKeyId, expiration }, context) => {
  const { store, principal, random, secrets, now, invalidate, audit } = context;
  const old = await lockRootKey(rootKeyId, "create_root_key", context);
  const { name, enabled, expires_at } = old;
  const rootKeys = store.of(RootKeyWriter);
  const issued = await rootKeys.issue(
    {
      name,
      grants: grantsOf(old),
      enabled,
      expiresAt: expires_at,
      createdBy: principal.rootKeyId,
      leakAction: old.leak_action,
    },
    { random, secrets },
    now,
  );
  const expiresAt = endAfterReroll(now, expiration, expires_at, EXPIRES_MAX);
  await rootKeys.update(rootKeyId, { expires_at: expiresAt }, now);
  invalidate.rootKey(rootKeyId);
  invalidate.rootKeyHash(issued.hash);
  const { rootKeyId: newRootKeyId } = issued;
  audit([rootKeyId, newRootKeyId], { expiresAt }, [
    { type: "root_key.rerolled", objectId: rootKeyId, data: { rootKeyId, name, newRootKeyId, expires: expiresAt } },
    {
      type: "root_key.created",
      objectId: newRootKeyId,
      data: { rootKeyId: newRootKeyId, name, rerolledFrom: rootKeyId },
    },
  ]);
  return { rootKeyId: issued.rootKeyId, key: issued.key };
});
