import type { MeteredContext, QueryContext } from "../../platform/rpc/operation.ts";
import type { HoldRow } from "../../platform/store/schema.ts";
import type { Services } from "../services.ts";
import type { HoldSubject } from "./record.ts";
import { HoldReader } from "./statements.ts";

/** Finds a hold that the caller may read. */
export async function findHold(
  holdId: string,
  { store, principal, fail }: Pick<QueryContext<"hold_not_found">, "store" | "principal" | "fail">,
): Promise<HoldRow> {
  const hold = await store.of(HoldReader).find(holdId);
  if (!hold) return fail("hold_not_found");
  principal.authorize(`apis.${hold.api_id}.read_key`);
  return hold;
}

/** Finds what is needed to change a hold, which the caller may do: at once for most, as each promise costs a settlement. */
export function findSubject(
  holdId: string,
  { holdSubjects }: Pick<Services, "holdSubjects">,
  { workspaceId, principal, fail }: Pick<MeteredContext<"hold_not_found">, "workspaceId" | "principal" | "fail">,
): HoldSubject | Promise<HoldSubject> {
  if (principal === null) return fail("authentication_missing");
  const authorized = (hold: HoldSubject | undefined) => {
    if (!hold) return fail("hold_not_found");
    principal.authorize(`apis.${hold.apiId}.verify_key`);
    return hold;
  };
  const hold = holdSubjects.find(holdId, workspaceId);
  return hold instanceof Promise ? hold.then(authorized) : authorized(hold);
}
