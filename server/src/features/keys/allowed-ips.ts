import type { MutationContext } from "../../platform/rpc/operation.ts";
import { KeyWriter } from "./statements/keys.ts";

/** Checks that every running program checks the addresses of a key, if there are any to store. */
export async function acceptAllowedIps(
  allowedIps: readonly string[] | null | undefined,
  { store, fail }: Pick<MutationContext<"precondition_failed">, "store" | "fail">,
): Promise<void> {
  if (!(await store.of(KeyWriter).accepts(allowedIps))) return fail("precondition_failed", OLDER_PROGRAMS_OF_ADDRESSES);
}

/** Why addresses of a key cannot be stored. */
export const OLDER_PROGRAMS_OF_ADDRESSES =
  "Another node runs an earlier release, which would let every address use the key, or is starting. " +
  "Upgrade every node, then send the request again.";
