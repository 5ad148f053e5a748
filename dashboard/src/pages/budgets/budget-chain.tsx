import { type Budget, LatchkeyError } from "@latchkey/sdk";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { Id } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { BudgetBar, BudgetState } from "./budget-bar.tsx";
import { amountText, heldText } from "./budget-use.ts";

/** For `useQuery`: a budget and those above it up to the root, as far as the root key may read them. */
export function chainOf(budgetId: string) {
  return queryOptions<readonly Budget[], Error>({
    queryKey: ["budgets.getBudget", { chainOf: budgetId }],
    queryFn: async ({ signal }) => {
      const chain: Budget[] = [];
      for (let next: string | undefined = budgetId; next !== undefined; ) {
        try {
          const { data }: { data: Budget } = await call("budgets.getBudget", { budgetId: next }, { signal });
          chain.push(data);
          next = data.parentId;
        } catch (error) {
          if (chain.length > 0 && error instanceof LatchkeyError && error.status === 403) break;
          throw error;
        }
      }
      return chain;
    },
  });
}

/** Budgets that are charged together, from the lowest to the root, with what each has left. */
export function BudgetChain({ of: chain, isFirstLinked = true }: { of: readonly Budget[]; isFirstLinked?: boolean }) {
  const last = chain.at(-1);
  return (
    <ul className="@container space-y-2">
      {chain.map((budget, index) => (
        <li
          key={budget.budgetId}
          className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 gap-y-1 @2xl:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_minmax(0,1fr)_8rem]"
        >
          {index > 0 || isFirstLinked ? (
            <Link
              to="/budgets/$budgetId"
              params={{ budgetId: budget.budgetId }}
              className="truncate font-medium hover:underline"
            >
              <bdi>{budget.name}</bdi>
            </Link>
          ) : (
            <span className="truncate font-medium">
              <bdi>{budget.name}</bdi>
            </span>
          )}
          <BudgetBar of={budget} className="order-last col-span-2 @2xl:order-none @2xl:col-span-1" />
          <span className="order-last col-span-2 text-quiet tabular-nums @2xl:order-none @2xl:col-span-1">
            {amountText(budget.remaining, budget)} remain{heldText(budget)}
          </span>
          <span className="@2xl:text-right">
            <BudgetState of={budget} />
          </span>
        </li>
      ))}
      {last?.parentId !== undefined && (
        <li className="text-quiet">
          And those from <Id id={last.parentId} /> upwards, which the root key may not read.
        </li>
      )}
    </ul>
  );
}

/** What the budget of a key or an identity has left, and those above it. */
export function AssignedBudget({ budgetId }: { budgetId: string }) {
  const isAllowed = useCan()(`budgets.${budgetId}.read_budget`);
  const chain = useQuery({ ...chainOf(budgetId), enabled: isAllowed });
  if (!isAllowed) {
    return (
      <p className="text-quiet">
        <Id id={budgetId} />. What it has left needs the permission budgets.*.read_budget.
      </p>
    );
  }
  return chain.data ? <BudgetChain of={chain.data} /> : <Loading of={chain} lines={1} />;
}
