import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { endAfterReroll } from "../../rules/expiry.ts";
import { grantsOf } from "../../store/administration/root-keys.ts";
import { exampleRootKey } from "../examples.ts";
import { EXPIRES_MAX, integer, RootKeyId } from "../schema.ts";
import { lockRootKey } from "./lock-root-key.ts";
import { IssuedOutput } from "./record.ts";

export const rerollRootKey = mutation("rootKeys.rerollRootKey", {
  summary: "Replace a root key",
  description:
    "Makes a root key that is otherwise like the old one, which goes on for `expiration` milliseconds, rounded up to a " +
    "whole minute, or ends at once with 0. The root key of the call needs every permission that this one has. One that " +
    "the service's configuration gives is replaced there.",
  idempotent: true,
  narrowsAccess: true,
  permissions: ["rootKeys.{rootKeyId}.create_root_key"],
  input: z.strictObject({
    rootKeyId: RootKeyId,
    expiration: integer(0, EXPIRES_MAX).describe("For how long the old root key goes on, in milliseconds."),
  }),
  output: z.strictObject(IssuedOutput),
  problems: ["root_key_not_found", "protected_resource"],
  examples: [
    {
      summary: "A new one; the old one works for another hour",
      input: { rootKeyId: exampleRootKey.rootKeyId, expiration: 3_600_000 },
      output: { rootKeyId: "rk_h2JzPq8uVwX5bNtM", key: "lk_root_9iyiXJFwsaQWrzE5CchP6EvMBWjXzraKQ5zCFoY" },
    },
    {
      summary: "A root key that is not there",
      input: { rootKeyId: "rk_Vb4nYk0sUoQ2rTzE", expiration: 0 },
      problem: "root_key_not_found",
    },
  ],
}).handle(async ({ rootKeyId, expiration }, context) => {
  const { store, random, secrets, now, invalidate, audit } = context;
  const old = await lockRootKey(rootKeyId, "create_root_key", context);
  const { name, enabled, expires_at } = old;
  const issued = await store.rootKeys.issue(
    { name, grants: grantsOf(old), enabled, expiresAt: expires_at },
    { random, secrets },
    now,
  );
  const expiresAt = endAfterReroll(now, expiration, expires_at, EXPIRES_MAX);
  await store.rootKeys.update(rootKeyId, { expires_at: expiresAt }, now);
  invalidate.rootKey(rootKeyId);
  invalidate.rootKeyHash(issued.hash);
  audit([rootKeyId, issued.rootKeyId], { expiresAt });
  return { rootKeyId: issued.rootKeyId, key: issued.key };
});
