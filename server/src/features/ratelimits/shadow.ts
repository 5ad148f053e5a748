import type { MutationContext } from "../../platform/rpc/operation.ts";
import { RatelimitWriter } from "./statements/ratelimits.ts";

/** Checks that every running program knows the shadow mode, if a limit to store has it. */
export async function acceptShadow(
  limits: readonly { readonly shadow?: boolean | undefined }[] | null | undefined,
  { store, fail }: Pick<MutationContext<"precondition_failed">, "store" | "fail">,
): Promise<void> {
  if (!(await store.of(RatelimitWriter).accepts(limits))) return fail("precondition_failed", OLDER_PROGRAMS_OF_SHADOW);
}

/** Why limits in shadow mode cannot be stored. */
export const OLDER_PROGRAMS_OF_SHADOW =
  "Another node runs an earlier release, which would enforce the limit instead of only counting it, or is starting. " +
  "Upgrade every node, then send the request again.";
