import schema from "virtual:operation/ratelimits.limit";
import { useState } from "react";
import { call, type Data } from "../../api/client.ts";
import { exactNumber, relativeTime } from "../../api/format.ts";
import { limitText } from "../../api/limit-text.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { TextField } from "../../ui/fields.tsx";
import { newRatelimit, WindowFields, windowOf } from "../../ui/ratelimits-field.tsx";
import { StatusBadge } from "../../ui/status-badge.tsx";

type Overrides = readonly Data<"ratelimits.listOverrides">["overrides"][number][];

interface Answer {
  readonly identifier: string;
  readonly duration: number;
  readonly data: Data<"ratelimits.limit">;
}

/** Asks the service which limit holds for an identifier and what its counter is. It charges nothing. */
export function LimitTester({
  namespace: { id, name },
  overrides,
}: {
  namespace: { readonly id: string; readonly name: string };
  overrides: Overrides;
}) {
  const [identifier, setIdentifier] = useState("");
  const [draft, setDraft] = useState(newRatelimit);
  const [state, setState] = useState<{ isPending: boolean; answer?: Answer; error?: unknown }>({ isPending: false });
  const { limit, duration } = windowOf(draft);
  const input = { namespace: name, identifier, limit, duration, cost: 0 };
  const problem =
    (identifier === "" ? "Enter an identifier" : textProblem(member(schema, "identifier"), identifier)) ??
    numberProblem(member(schema, "limit"), limit) ??
    (numberProblem(member(schema, "duration"), duration) && "The window must be between 1 second and 366 days");
  const check = async () => {
    if (problem) return;
    setState({ isPending: true });
    try {
      const { data } = await call("ratelimits.limit", input);
      setState({ isPending: false, answer: { identifier, duration, data } });
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return (
    <div className="max-w-2xl space-y-3">
      <p className="text-quiet">
        What would a call with this identifier get? The service answers for a cost of 0, so that nothing is charged.
      </p>
      <div className="grid grid-cols-2 items-end gap-2 sm:grid-cols-[minmax(0,2fr)_minmax(0,1fr)_minmax(0,1fr)_8rem]">
        <TextField
          label="Identifier"
          value={identifier}
          onChange={setIdentifier}
          onEnter={() => void check()}
          placeholder="user_4021"
          isMono
        />
        <WindowFields value={draft} onChange={(change) => setDraft({ ...draft, ...change })} />
      </div>
      <div className="flex flex-wrap items-center gap-2">
        <Button
          needs={`ratelimits.${id}.limit`}
          offBecause={problem}
          isPending={state.isPending}
          onPress={() => void check()}
        >
          Check the limit
        </Button>
        <CopyButton kind="quiet" text={() => snippetsOf("ratelimits.limit", input).curl}>
          Copy as curl
        </CopyButton>
      </div>
      {state.error !== undefined && <ErrorBox error={state.error} />}
      {state.answer && <Result of={state.answer} overrides={overrides} />}
    </div>
  );
}

function Result({ of: { identifier, duration, data }, overrides }: { of: Answer; overrides: Overrides }) {
  const { limit, remaining, reset, overrideId } = data;
  // The list may arrive after the answer.
  const override = overrides.find((one) => one.overrideId === overrideId);
  const length = override?.duration ?? duration;
  return (
    <div aria-live="polite" className="appear space-y-2 rounded-md border border-line p-3">
      <p className="flex flex-wrap items-center gap-2">
        <StatusBadge tone={remaining > 0 ? "good" : "bad"}>
          {remaining > 0 ? "Would pass" : "Would be denied"}
        </StatusBadge>
        <code className="font-mono text-xs">{identifier}</code>
      </p>
      <p>
        {overrideId === undefined ? (
          "No override matches: the limit of the call holds."
        ) : (
          <>
            The override{" "}
            <code className="font-mono text-xs" data-override>
              {override?.identifier ?? overrideId}
            </code>{" "}
            holds.
          </>
        )}
      </p>
      <div>
        <div className="flex justify-between gap-3 text-xs tabular-nums">
          <span>
            {exactNumber(limit - remaining)} used of {limitText({ limit, duration: length })}
          </span>
          <span className="text-quiet">resets {relativeTime(reset)}</span>
        </div>
        <meter
          aria-label="Used"
          min={0}
          max={Math.max(1, limit)}
          high={limit * 0.9}
          value={limit - remaining}
          className="h-2 w-full"
        />
      </div>
    </div>
  );
}
