import { Link, lazyRouteComponent } from "@tanstack/react-router";
import { type Data, useCall } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { exactNumber } from "../../api/format.ts";
import { LimitWords } from "../../ui/charts/limit.tsx";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { MetadataFact } from "../../ui/fields/metadata-fact.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { Time } from "../../ui/text/time.tsx";
import { BudgetFact } from "../budgets/budget-fact.tsx";
import { ConcurrencyFact } from "../holds/concurrency-fact.tsx";
import { PlanFact } from "../plans/plan-fact.tsx";

const load = () => loadCode(() => import("./identity-editors.tsx"));
const LimitsEditor = lazyRouteComponent(load, "LimitsEditor");
const IdentityMetadataEditor = lazyRouteComponent(load, "IdentityMetadataEditor");

/** What is left of the budget that the plan gives, and when it is refilled. */
function PlanBudget({ of: { budgetId, remaining, held, refill } }: { of: NonNullable<Identity["budget"]> }) {
  return (
    <span className="flex flex-wrap items-baseline gap-x-3">
      <Link to="/budgets/$budgetId" params={{ budgetId }} className="link tabular-nums">
        {exactNumber(remaining)}
      </Link>
      {held > 0 && <span className="text-xs text-quiet">{exactNumber(held)} held</span>}
      {refill && (
        <span className="text-xs text-quiet">
          {exactNumber(refill.amount)} {refill.interval}, next <Time at={refill.nextAt} />
        </span>
      )}
    </span>
  );
}

type Identity = Data<"identities.getIdentity">;

/** The plan, the limits and the budget that all keys of an identity share, and its metadata, edited in place. */
export function IdentityMembers({ of: identity }: { of: Identity }) {
  const { meta, ratelimits } = identity;
  const needs = "identities.*.update_identity";
  const { mutateAsync } = useCall("identities.updateIdentity");
  return (
    <Facts>
      <PlanFact plan={identity.plan} needs={needs} save={(plan) => mutateAsync({ identity: identity.id, plan })} />
      <Fact name="Limits">
        <EditInPlace
          label="the limits"
          needs={needs}
          display={
            ratelimits.length === 0 ? (
              <None />
            ) : (
              <ul className="space-y-1">
                {ratelimits.map((limit) => (
                  <li key={limit.id} className="flex flex-wrap items-baseline gap-x-3">
                    <span className="font-medium">{limit.name}</span>
                    <LimitWords of={limit} />
                  </li>
                ))}
              </ul>
            )
          }
          editor={(onClose) => <LimitsEditor of={identity} onClose={onClose} />}
        />
      </Fact>
      <ConcurrencyFact
        of={identity.concurrency}
        needs={needs}
        save={(concurrency) => mutateAsync({ identity: identity.id, concurrency })}
      />
      <BudgetFact
        budgetId={identity.budgetId}
        needs={needs}
        save={(budgetId) => mutateAsync({ identity: identity.id, budgetId })}
      />
      {identity.budget && (
        <Fact name="Left of the plan’s budget">
          <PlanBudget of={identity.budget} />
        </Fact>
      )}
      <MetadataFact
        meta={meta}
        needs={needs}
        editor={(before, onClose) => <IdentityMetadataEditor of={identity} before={before} onClose={onClose} />}
      />
    </Facts>
  );
}
