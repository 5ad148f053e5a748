import schema from "virtual:operation/keys.updateKey";
import type { Key } from "@latchkey/sdk";
import { useState } from "react";
import { call, type Data, latchkey, refresh } from "../../api/client.ts";
import { DAY, exactNumber, localTime, utcTime } from "../../api/format.ts";
import { member } from "../../api/schema.ts";
import { Button } from "../../ui/button.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { InlineEdit } from "../../ui/inline-edit.tsx";
import { LimitWords } from "../../ui/limit.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { RatelimitsField, ratelimitDraft, ratelimitInputs } from "../../ui/ratelimits-field.tsx";
import { toast } from "../../ui/toast.tsx";
import { CountedLimits } from "./counted-limits.tsx";
import { CreditsField, creditsDraft, creditsInput } from "./credits-field.tsx";
import { refillTimes } from "./credits-history.ts";
import { CreditsLog } from "./credits-log.tsx";
import { useKeyUpdate } from "./overview.tsx";

type Limits = NonNullable<Data<"keys.explainVerification">["ratelimits"]>;

const REFILLS_SHOWN = 3;
const LONGEST_MONTH = 31 * DAY;

/** The balance of credits with its refills, and the limits with their current windows. */
export function KeyLimits({ of: key }: { of: Key }) {
  const { apiId, keyId, credits, ratelimits = [], identity } = key;
  const update = useKeyUpdate(key);
  const needs = `apis.${apiId}.update_key`;
  const add = async (value: number) => {
    await call("keys.updateCredits", { keyId, operation: "increment", value });
    await refresh();
    toast({
      text: `Added ${exactNumber(value)} credits.`,
      undo: async () => {
        await call("keys.updateCredits", { keyId, operation: "decrement", value });
        await refresh();
      },
    });
  };
  return (
    <Facts>
      <Fact name="Credits">
        <InlineEdit
          label="the credits"
          field="credits"
          needs={needs}
          display={
            credits ? (
              <div className="space-y-2">
                <p className="tabular-nums">
                  <span className="text-lg font-semibold">{exactNumber(credits.remaining)}</span> remain
                </p>
                {credits.refill && <Refills refill={credits.refill} remaining={credits.remaining} />}
                <div className="flex flex-wrap gap-1.5">
                  {[100, 1_000, 10_000].map((value) => (
                    <Button key={value} className="!h-7 !px-2 text-xs" needs={needs} onPress={() => void add(value)}>
                      Add {exactNumber(value)}
                    </Button>
                  ))}
                </div>
              </div>
            ) : (
              <None text="unlimited" />
            )
          }
          draft={() => creditsDraft(credits)}
          change={(draft) => {
            if (JSON.stringify(draft) === JSON.stringify(creditsDraft(credits))) return {};
            const { value, problem } = creditsInput(draft, member(schema, "credits"));
            if (!value) return { value: null };
            return { value: { ...value, ...(credits?.refill && !value.refill && { refill: null }) }, problem };
          }}
          editor={(draft, set) => <CreditsField value={draft} onChange={set} />}
          save={update("credits")}
        />
      </Fact>
      {credits && (
        <Fact name="History of the credits">
          <CreditsLog of={key} />
        </Fact>
      )}
      <Fact name="Limits of the key">
        <InlineEdit
          label="the limits"
          field="ratelimits"
          needs={needs}
          display={ratelimits.length === 0 ? <None /> : <Limits limits={ratelimits} />}
          draft={() => ratelimits.map(ratelimitDraft)}
          change={(draft) => {
            if (JSON.stringify(draft) === JSON.stringify(ratelimits.map(ratelimitDraft))) return {};
            const { value, problem } = ratelimitInputs(draft, member(schema, "ratelimits").items!);
            return { value: value.length === 0 ? null : value, problem };
          }}
          editor={(draft, set) => <RatelimitsField value={draft} onChange={set} />}
          save={update("ratelimits")}
        />
      </Fact>
      {identity && identity.ratelimits.length > 0 && (
        <Fact name={`Limits of ${identity.externalId}`}>
          <Limits limits={identity.ratelimits} />
        </Fact>
      )}
      {(ratelimits.length > 0 || (identity?.ratelimits.length ?? 0) > 0) && (
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
  const [state, setState] = useState<{ limits?: Limits; error?: unknown }>({});
  const look = async () => {
    try {
      const { data } = await latchkey.keys.explainVerification({ keyId });
      setState({ limits: data.ratelimits ?? [] });
    } catch (error) {
      setState({ error });
    }
  };
  const { limits, error } = state;
  return (
    <div className="space-y-2">
      {limits && <CountedLimits of={limits} />}
      <Button needs={`apis.${apiId}.verify_key`} onPress={() => void look()}>
        {limits ? "Read again" : "Read them"}
      </Button>
      {error !== undefined && <ErrorBox error={error} />}
    </div>
  );
}

/** The next times of a refill. */
function nextRefills(refill: NonNullable<NonNullable<Key["credits"]>["refill"]>): number[] {
  const now = Date.now();
  return refillTimes(refill, now + 1, now + (REFILLS_SHOWN + 1) * LONGEST_MONTH).slice(0, REFILLS_SHOWN);
}

/** The next refills. They happen at midnight UTC. */
function Refills({
  refill,
  remaining,
}: {
  refill: NonNullable<NonNullable<Key["credits"]>["refill"]>;
  remaining: number;
}) {
  return (
    <div>
      <p className="text-quiet">
        {refill.interval === "daily" ? "Daily" : `Monthly on day ${refill.refillDay ?? 1}`} it is set to{" "}
        {exactNumber(refill.amount)}.
      </p>
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
