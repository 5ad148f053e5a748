import type { QueryContext } from "../../platform/rpc/operation.ts";
import type { HoldRow } from "../../platform/store/schema.ts";
import { HoldReader } from "./statements.ts";

/** Finds the hold of a call whose caller may have it. */
export async function findHold(
  holdId: string,
  action: "read_key" | "verify_key",
  { store, principal, fail }: Pick<QueryContext<"hold_not_found">, "store" | "principal" | "fail">,
): Promise<HoldRow> {
  const hold = await store.of(HoldReader).find(holdId);
  if (!hold) return fail("hold_not_found");
  principal.authorize(`apis.${hold.api_id}.${action}`);
  return hold;
}
