import type { Budget } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent, useNavigate, useParams } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { call, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { exactNumber } from "../../api/format.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { Figure, Figures } from "../../ui/charts/figures.tsx";
import { classes } from "../../ui/classes.ts";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Count } from "../../ui/text/number.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";
import { ActivitySection } from "../audit/activity-section.tsx";
import { HoldsSection } from "../holds/holds-section.tsx";
import { BudgetBar, BudgetState } from "./budget-bar.tsx";
import { BudgetChain, chainOf } from "./budget-chain.tsx";
import { BudgetMembers } from "./budget-members.tsx";
import { amountText, hadInPeriod, nextRefillText } from "./budget-use.ts";

const CreateBudget = lazy(async () => ({
  default: (await loadCode(() => import("./create-budget.tsx"))).CreateBudget,
}));
const ChangeCredits = lazyRouteComponent(() => loadCode(() => import("../keys/change-credits.tsx")), "ChangeCredits");
const BudgetChildren = lazyRouteComponent(() => loadCode(() => import("./budget-children.tsx")), "BudgetChildren");
const BudgetSpend = lazyRouteComponent(() => loadCode(() => import("./budget-spend.tsx")), "BudgetSpend");
const KeysByApi = lazyRouteComponent(() => loadCode(() => import("../keys/keys-by-api.tsx")), "KeysByApi");
const IdentitiesWith = lazyRouteComponent(
  () => loadCode(() => import("../identities/identities-with.tsx")),
  "IdentitiesWith",
);

const LEVELS_MAX = 4;

/** A budget: what it has left, what is charged with it, and what spends from it. */
export function BudgetPage() {
  const { budgetId } = useParams({ from: "/shell/budgets/$budgetId" });
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  const found = useQuery(chainOf(budgetId));
  const [budget, ...parents] = found.data ?? [];
  const above = (
    <span className="flex flex-wrap gap-x-1">
      <Link to="/budgets" className="hover:underline">
        Budgets
      </Link>
      {parents.toReversed().map((parent) => (
        <span key={parent.budgetId}>
          /{" "}
          <Link to="/budgets/$budgetId" params={{ budgetId: parent.budgetId }} className="hover:underline">
            <bdi>{parent.name}</bdi>
          </Link>
        </span>
      ))}
    </span>
  );
  if (!budget) {
    return (
      <Page title="Budget" above={above}>
        <Loading of={found} lines={8} />
      </Page>
    );
  }
  const { name, remaining } = budget;
  const needs = `budgets.${budgetId}.update_budget`;
  return (
    <Page
      above={above}
      tabTitle={name}
      title={
        <span className="flex flex-wrap items-center gap-2.5">
          {name}
          <BudgetState of={budget} />
        </span>
      }
      summary={<Id id={budgetId} />}
      actions={
        <>
          <CopyButton text={() => snippetsOf("budgets.getBudget", { budgetId }).curl}>Copy as curl</CopyButton>
          {budget.identity === undefined && (
            <MoreMenu
              label="Actions"
              entries={[
                {
                  label: "Delete the budget…",
                  isDanger: true,
                  needs: `budgets.${budgetId}.delete_budget`,
                  onAction: () => setDeleting(true),
                },
              ]}
            />
          )}
        </>
      }
    >
      <Period of={budget} />
      <div className="mb-5">
        <WhenSeen height="min-h-14">
          <ChangeCredits
            remaining={remaining}
            update={(operation, value) => call("budgets.updateCredits", { budgetId, operation, value })}
            needs={needs}
          />
        </WhenSeen>
      </div>
      {budget.parentId !== undefined && (
        <Section title="Charged together">
          <p className="mb-3 text-quiet">A call is charged to all of these, or to none.</p>
          <BudgetChain of={[budget, ...parents]} isFirstLinked={false} />
        </Section>
      )}
      <Section title="Spend over time">
        <WhenSeen height="min-h-60">
          <BudgetSpend of={budget} />
        </WhenSeen>
      </Section>
      <HoldsSection of={{ budgetId }} />
      <Section title="Settings">
        <BudgetMembers of={budget} />
      </Section>
      {budget.identity === undefined && <Spenders of={budget} level={parents.length + 1} />}
      <ActivitySection target={budgetId} />
      <ConfirmDialog
        title="Delete the budget"
        action="Delete budget"
        typed={name}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={async () => {
          await call("budgets.deleteBudget", { budgetId });
          await navigate({ to: "/budgets" });
          await refresh();
          toast({ text: `Deleted the budget ${name}.` });
        }}
      >
        The credits of <strong className="font-medium">{name}</strong> are lost. The service refuses while keys,
        identities or other budgets use it. This cannot be undone.
      </ConfirmDialog>
    </Page>
  );
}

/** What spends from a budget that was created: budgets below it, keys and identities. */
function Spenders({ of: budget, level }: { of: Budget; level: number }) {
  const { budgetId } = budget;
  const navigate = useNavigate();
  const [isCreating, setCreating] = useState(false);
  return (
    <>
      <Section
        title="Budgets below"
        actions={
          <Button
            needs={["budgets.*.create_budget", `budgets.${budgetId}.assign_budget`]}
            offBecause={level >= LEVELS_MAX && `A tree of budgets has ${LEVELS_MAX} levels`}
            onPress={() => setCreating(true)}
          >
            <Plus aria-hidden />
            Create budget below
          </Button>
        }
      >
        <WhenSeen>
          <BudgetChildren of={budget} />
        </WhenSeen>
      </Section>
      <Section title="Keys">
        <WhenSeen>
          <KeysByApi
            of={{ budgetId }}
            empty={<p className="text-quiet">No key has it itself. The page of a key gives it one.</p>}
          />
        </WhenSeen>
      </Section>
      <Section title="Identities">
        <WhenSeen>
          <IdentitiesWith
            of={{ budgetId }}
            label="Identities of the budget"
            empty="No identity has it. All keys of an identity spend from its budget too."
          />
        </WhenSeen>
      </Section>
      {isCreating && (
        <Suspense>
          <CreateBudget
            parent={budget}
            onClose={() => setCreating(false)}
            onCreated={(child) => void navigate({ to: "/budgets/$budgetId", params: { budgetId: child } })}
          />
        </Suspense>
      )}
    </>
  );
}

/** What the present period had, with its bar. */
function Period({ of: budget }: { of: Budget }) {
  const { remaining, held, spent, refill, thresholds } = budget;
  const had = hadInPeriod(budget);
  return (
    <>
      <Figures>
        <Figure name="Remaining" note={budget.unit ?? "credits"}>
          <Count value={remaining} />
        </Figure>
        {held > 0 && (
          <Figure name="Held" note="by calls whose cost is not known yet">
            <Count value={held} />
          </Figure>
        )}
        <Figure
          name={refill ? "Spent since the last refill" : "Spent since credits were added"}
          note={`of ${amountText(had, budget)}`}
        >
          <Count value={spent} />
        </Figure>
        <Figure name="Next refill" note={refill && `${exactNumber(refill.amount)} ${refill.interval}`}>
          {nextRefillText(budget)}
        </Figure>
      </Figures>
      <div className="mb-5">
        <BudgetBar of={budget} className="!h-3" />
        {thresholds.length > 0 && (
          <div aria-hidden className="relative mt-1 h-4 text-xs text-quiet tabular-nums">
            {thresholds.map((threshold) => (
              <span
                key={threshold}
                className={classes("absolute", threshold > 95 ? "-translate-x-full" : "-translate-x-1/2")}
                style={{ left: `${threshold}%` }}
              >
                {threshold} %
              </span>
            ))}
          </div>
        )}
      </div>
    </>
  );
}
