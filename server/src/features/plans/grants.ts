import type { MutationContext } from "../../platform/rpc/operation.ts";
import { fold } from "../../platform/store/search.ts";
import { ensurePermissions, idsOf } from "../permissions/ensure.ts";
import { RoleWriter } from "../permissions/statements/roles.ts";
import { PlanWriter } from "./statements/plans.ts";

type Context = Pick<MutationContext<"role_not_found">, "store" | "principal" | "random" | "now" | "fail">;

/** Replaces those of the permissions and roles of a plan that are given. */
export async function setGrants(
  planId: string,
  { permissions, roles }: { permissions?: readonly string[] | undefined; roles?: readonly string[] | undefined },
  context: Context,
): Promise<void> {
  const { store, fail } = context;
  const plans = store.of(PlanWriter);
  if (roles) {
    const found = await store.of(RoleWriter).lockByNames(roles);
    const known = new Set(found.map(({ name_folded }) => name_folded));
    const missing = roles.find((name) => !known.has(fold(name)));
    if (missing !== undefined) return fail("role_not_found", `Role '${missing}' was not found.`);
    await plans.setRoles(planId, idsOf(found));
  }
  if (permissions) await plans.setPermissions(planId, idsOf(await ensurePermissions(permissions, context)));
}
