import type { Key } from "@latchkey/sdk";
import { lazyRouteComponent } from "@tanstack/react-router";
import { useState } from "react";
import { call, type Data, useCall } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { exactNumber, localTime, utcTime } from "../../api/format.ts";
import { nextRefills, type Refill, refillText } from "../../api/refill.ts";
import { Button } from "../../ui/button.tsx";
import { LimitWords } from "../../ui/charts/limit.tsx";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";
import { BudgetFact, BudgetLeft } from "../budgets/budget-fact.tsx";
import { Concurrency, ConcurrencyFact } from "../holds/concurrency-fact.tsx";
import { PlanFact, PlanGives } from "../plans/plan-fact.tsx";
import { CountedLimits } from "./counted-limits.tsx";
import { explain } from "./explain.ts";

const load = () => loadCode(() => import("./key-editors.tsx"));
const CreditsEditor = lazyRouteComponent(load, "CreditsEditor");
const LimitsEditor = lazyRouteComponent(load, "LimitsEditor");
const ChangeCredits = lazyRouteComponent(() => loadCode(() => import("./change-credits.tsx")), "ChangeCredits");
const CreditsLog = lazyRouteComponent(() => loadCode(() => import("./credits-log.tsx")), "CreditsLog");

type Explained = Data<"keys.explainVerification">;

/** The balance of credits with its refills, and the limits with their current windows. */
export function KeyLimits({ of: key }: { of: Key }) {
  const { apiId, keyId, credits, ratelimits = [], identity } = key;
  const needs = `apis.${apiId}.update_key`;
  const { mutateAsync } = useCall("keys.updateKey");
  return (
    <Facts>
      <Fact name="Credits">
        <EditInPlace
          label="the credits"
          needs={needs}
          display={
            credits ? (
              <div className="space-y-2">
                <p className="tabular-nums">
                  <span className="text-lg font-semibold">{exactNumber(credits.remaining)}</span> remain
                </p>
                {credits.refill && <Refills refill={credits.refill} remaining={credits.remaining} />}
              </div>
            ) : (
              <None text="unlimited" />
            )
          }
          editor={(onClose) => <CreditsEditor of={key} onClose={onClose} />}
        />
        {credits && (
          <WhenSeen height="min-h-14">
            <ChangeCredits
              remaining={credits.remaining}
              update={(operation, value) => call("keys.updateCredits", { keyId, operation, value })}
              needs={needs}
            />
          </WhenSeen>
        )}
      </Fact>
      <BudgetFact budgetId={key.budgetId} needs={needs} save={(budgetId) => mutateAsync({ keyId, budgetId })} />
      {identity?.budgetId !== undefined && (
        <Fact name={`Budget of ${identity.externalId}`}>
          <BudgetLeft budgetId={identity.budgetId} />
        </Fact>
      )}
      {credits && (
        <Fact name="History of the credits">
          <WhenSeen>
            <CreditsLog of={key} />
          </WhenSeen>
        </Fact>
      )}
      <PlanFact plan={key.plan} needs={needs} save={(plan) => mutateAsync({ keyId, plan })} />
      {identity?.plan !== undefined && (
        <Fact name={`Plan of ${identity.externalId}`}>
          <PlanGives of={identity.plan} />
        </Fact>
      )}
      <Fact name="Limits of the key">
        <EditInPlace
          label="the limits"
          needs={needs}
          display={ratelimits.length === 0 ? <None /> : <Limits limits={ratelimits} />}
          editor={(onClose) => <LimitsEditor of={key} onClose={onClose} />}
        />
      </Fact>
      {identity && identity.ratelimits.length > 0 && (
        <Fact name={`Limits of ${identity.externalId}`}>
          <Limits limits={identity.ratelimits} />
        </Fact>
      )}
      <ConcurrencyFact of={key.concurrency} needs={needs} save={(concurrency) => mutateAsync({ keyId, concurrency })} />
      {identity?.concurrency && (
        <Fact name={`Calls at once of ${identity.externalId}`}>
          <Concurrency of={identity.concurrency} />
        </Fact>
      )}
      {(ratelimits.length > 0 ||
        (identity?.ratelimits.length ?? 0) > 0 ||
        key.plan !== undefined ||
        identity?.plan !== undefined) && (
        <Fact name="Current windows">
          <Windows of={key} />
        </Fact>
      )}
    </Facts>
  );
}

function Limits({ limits }: { limits: NonNullable<Key["ratelimits"]> }) {
  return (
    <ul className="space-y-1">
      {limits.map(({ id, name, autoApply, ...limit }) => (
        <li key={id} className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium">{name}</span>
          <LimitWords of={limit} />
          <span className="text-xs text-quiet">
            {autoApply ? "charged by every verification" : "charged by verifications that name it"}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The counts of the current windows. They change with every call, so they are read when the button is pressed. */
function Windows({ of: { keyId, apiId } }: { of: Key }) {
  const [state, setState] = useState<{ explained?: Explained; error?: unknown }>({});
  const look = async () => {
    try {
      setState({ explained: await explain({ keyId }) });
    } catch (error) {
      setState({ error });
    }
  };
  const { explained, error } = state;
  return (
    <div className="space-y-2">
      {explained?.ratelimits && <CountedLimits of={explained.ratelimits} />}
      <Button needs={`apis.${apiId}.verify_key`} onPress={() => void look()}>
        {explained ? "Read again" : "Read them"}
      </Button>
      {error !== undefined && <ErrorBox error={error} />}
    </div>
  );
}

/** The next refills. */
function Refills({ refill, remaining }: { refill: Refill; remaining: number }) {
  return (
    <div>
      <p className="text-quiet">{refillText(refill)}</p>
      <meter
        aria-label="Credits that remain until the refill"
        min={0}
        max={Math.max(refill.amount, remaining)}
        low={refill.amount * 0.1}
        value={remaining}
        className="my-1 h-2 w-full max-w-md"
      />
      <ol className="flex flex-wrap gap-x-4 text-xs text-quiet">
        {nextRefills(refill).map((time) => (
          <li key={time} title={utcTime(time)}>
            {localTime(time)}
          </li>
        ))}
      </ol>
    </div>
  );
}
