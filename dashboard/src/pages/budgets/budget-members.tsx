import type { Budget } from "@latchkey/sdk";
import { Link, lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { exactNumber } from "../../api/format.ts";
import { refillText } from "../../api/refill.ts";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { MetadataFact } from "../../ui/fields/metadata-fact.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { Time } from "../../ui/text/time.tsx";
import { PlanGives } from "../plans/plan-fact.tsx";
import { onEmptyTexts } from "./budget-use.ts";

const load = () => loadCode(() => import("./budget-editors.tsx"));
const BudgetNameEditor = lazyRouteComponent(load, "BudgetNameEditor");
const RefillEditor = lazyRouteComponent(load, "RefillEditor");
const ThresholdsEditor = lazyRouteComponent(load, "ThresholdsEditor");
const OnEmptyEditor = lazyRouteComponent(load, "OnEmptyEditor");
const BudgetMetadataEditor = lazyRouteComponent(load, "BudgetMetadataEditor");

/** What a budget is set to, edited in place, and its totals. */
export function BudgetMembers({ of: budget }: { of: Budget }) {
  const { budgetId, name, refill, thresholds, onEmpty, meta } = budget;
  const needs = `budgets.${budgetId}.update_budget`;
  if (budget.identity) return <GivenMembers of={budget} identity={budget.identity} />;
  return (
    <Facts>
      <Fact name="Name">
        <EditInPlace
          label="the name"
          needs={needs}
          display={name}
          editor={(onClose) => <BudgetNameEditor of={budget} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Refill">
        <EditInPlace
          label="the refill"
          needs={needs}
          display={refill ? refillText(refill) : <None text="never" />}
          editor={(onClose) => <RefillEditor of={budget} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Thresholds">
        <EditInPlace
          label="the thresholds"
          needs={needs}
          display={thresholds.length === 0 ? <None /> : thresholdsText(thresholds)}
          editor={(onClose) => <ThresholdsEditor of={budget} onClose={onClose} />}
        />
      </Fact>
      <Fact name="A call that it does not cover">
        <EditInPlace
          label="what happens to calls that it does not cover"
          needs={needs}
          display={onEmptyTexts[onEmpty]}
          editor={(onClose) => <OnEmptyEditor of={budget} onClose={onClose} />}
        />
      </Fact>
      <MetadataFact
        meta={meta}
        needs={needs}
        editor={(before, onClose) => <BudgetMetadataEditor of={budget} before={before} onClose={onClose} />}
      />
      <Books of={budget} />
    </Facts>
  );
}

/** What a budget is set to that a plan gives: the page of the plan changes it. */
function GivenMembers({ of: budget, identity }: { of: Budget; identity: NonNullable<Budget["identity"]> }) {
  const { plan = "", refill, thresholds, onEmpty } = budget;
  return (
    <Facts>
      <Fact name="Identity">
        <Link to="/identities/$identityId" params={{ identityId: identity.id }} className="link">
          <bdi>{identity.externalId}</bdi>
        </Link>
      </Fact>
      <Fact name="Plan">
        <PlanGives of={plan} />
      </Fact>
      <Fact name="Refill">{refill ? refillText(refill) : <None text="never" />}</Fact>
      <Fact name="Thresholds">{thresholds.length === 0 ? <None /> : thresholdsText(thresholds)}</Fact>
      <Fact name="A call that it does not cover">{onEmptyTexts[onEmpty]}</Fact>
      <Books of={budget} />
    </Facts>
  );
}

function Books({ of: { unit, totals, createdAt } }: { of: Budget }) {
  return (
    <>
      <Fact name="Unit">{unit ?? <None />}</Fact>
      <Fact name="Totals">
        <span className="tabular-nums">
          {exactNumber(totals.granted)} granted, {exactNumber(totals.spent)} spent, {exactNumber(totals.lapsed)} lapsed
        </span>
      </Fact>
      <Fact name="Created">
        <Time at={createdAt} />
      </Fact>
    </>
  );
}

function thresholdsText(thresholds: readonly number[]): string {
  return thresholds.map((percent) => `${percent} %`).join(", ");
}
