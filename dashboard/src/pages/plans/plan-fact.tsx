import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { Fact, None } from "../../ui/page.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";

const AssignedPlan = lazyRouteComponent(() => loadCode(() => import("./assigned-plan.tsx")), "AssignedPlan");
const PlanEditor = lazyRouteComponent(() => loadCode(() => import("./plan-editor.tsx")), "PlanEditor");

/** What the plan of a key or an identity gives, among other facts. */
export function PlanGives({ of: plan }: { of: string }) {
  return (
    <WhenSeen height="min-h-5">
      <AssignedPlan of={plan} />
    </WhenSeen>
  );
}

/** The plan of a key or an identity among its facts, edited in place. `needs`: the permission to change the object. */
export function PlanFact({
  plan,
  needs,
  save,
}: {
  plan: string | undefined;
  needs: string;
  save: (plan: string | null) => Promise<unknown>;
}) {
  return (
    <Fact name="Plan">
      <EditInPlace
        label="the plan"
        needs={[needs, "plans.some.assign_plan"]}
        display={plan === undefined ? <None /> : <PlanGives of={plan} />}
        editor={(onClose) => <PlanEditor plan={plan} save={save} onClose={onClose} />}
      />
    </Fact>
  );
}
