import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { Fact, None } from "../../ui/page.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";

const AssignedBudget = lazyRouteComponent(() => loadCode(() => import("./budget-chain.tsx")), "AssignedBudget");
const BudgetEditor = lazyRouteComponent(() => loadCode(() => import("./budget-editor.tsx")), "BudgetEditor");

/** What the budget of a key or an identity has left, among other facts. */
export function BudgetLeft({ budgetId }: { budgetId: string }) {
  return (
    <WhenSeen height="min-h-5">
      <AssignedBudget budgetId={budgetId} />
    </WhenSeen>
  );
}

/** The budget of a key or an identity among its facts, edited in place. `needs`: the permission to change the object. */
export function BudgetFact({
  budgetId,
  needs,
  save,
}: {
  budgetId: string | undefined;
  needs: string;
  save: (budgetId: string | null) => Promise<unknown>;
}) {
  return (
    <Fact name="Budget">
      <EditInPlace
        label="the budget"
        needs={[needs, `budgets.${budgetId ?? "some"}.assign_budget`]}
        display={budgetId === undefined ? <None /> : <BudgetLeft budgetId={budgetId} />}
        editor={(onClose) => <BudgetEditor budgetId={budgetId} save={save} onClose={onClose} />}
      />
    </Fact>
  );
}
