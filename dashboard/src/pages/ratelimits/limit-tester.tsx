import schema from "virtual:operation/ratelimits.limit";
import { useState } from "react";
import { call, type Data } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { resetText } from "../../api/limit-text.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { LimitWords } from "../../ui/charts/limit.tsx";
import { Meter } from "../../ui/charts/meter.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { newRatelimit, StrictSwitch, WindowFields, windowOf } from "../../ui/fields/ratelimits-field.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { StatusBadge } from "../../ui/text/status-badge.tsx";

interface Answer {
  readonly identifier: string;
  readonly data: Data<"ratelimits.explainLimit">;
}

/** Explains which limit applies to an identifier, and what its counter is. It charges nothing. */
export function LimitTester({
  namespace: { id, name },
}: {
  namespace: { readonly id: string; readonly name: string };
}) {
  const [identifier, setIdentifier] = useState("");
  const [draft, setDraft] = useState(newRatelimit);
  const [state, setState] = useState<{ isPending: boolean; answer?: Answer; error?: unknown }>({ isPending: false });
  const { limit, duration } = windowOf(draft);
  const input = { namespace: name, identifier, limit, duration, mode: draft.mode };
  const problem =
    (identifier === "" ? "Enter an identifier" : textProblem(member(schema, "identifier"), identifier)) ??
    numberProblem(member(schema, "limit"), limit) ??
    (numberProblem(member(schema, "duration"), duration) && "The window must be between 1 second and 366 days");
  const check = async () => {
    if (problem) return;
    setState({ isPending: true });
    try {
      const { data } = await call("ratelimits.explainLimit", input);
      setState({ isPending: false, answer: { identifier, data } });
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return (
    <div className="max-w-2xl space-y-3">
      <p className="text-quiet">What would a call with this identifier get? Nothing is charged.</p>
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
      <StrictSwitch value={draft.mode} onChange={(mode) => setDraft({ ...draft, mode })} />
      <div className="flex flex-wrap items-center gap-2">
        <Button
          needs={`ratelimits.${id}.read_override`}
          offBecause={problem}
          isPending={state.isPending}
          onPress={() => void check()}
        >
          Check the limit
        </Button>
        <CopyButton kind="quiet" text={() => snippetsOf("ratelimits.explainLimit", input).curl}>
          Copy as curl
        </CopyButton>
      </div>
      {state.error !== undefined && <ErrorBox error={state.error} />}
      {state.answer && <Result of={state.answer} />}
    </div>
  );
}

function Result({ of: { identifier, data } }: { of: Answer }) {
  const { success, limit, duration, mode, shadow, used, override, others } = data;
  return (
    <div aria-live="polite" className="appear space-y-2 rounded-md border border-line p-3">
      <p className="flex flex-wrap items-center gap-2">
        <StatusBadge tone={success ? "good" : "bad"}>{success ? "Would pass" : "Would be denied"}</StatusBadge>
        <code className="font-mono text-xs">{identifier}</code>
      </p>
      <p>
        {override === undefined ? (
          "No override matches: the limit of the call holds."
        ) : (
          <>
            The override{" "}
            <code className="font-mono text-xs" data-override>
              {override.identifier}
            </code>{" "}
            holds.
          </>
        )}
      </p>
      {others.length > 0 && (
        <ul className="space-y-1 text-quiet">
          {others.map((other) => (
            <li key={other.overrideId}>
              Also matches: <code className="font-mono text-xs">{other.identifier}</code>, <LimitWords of={other} />
            </li>
          ))}
        </ul>
      )}
      <Meter label="Used" used={used} max={limit} note={resetText(data)}>
        {exactNumber(used)} used of <LimitWords of={{ limit, duration, mode, shadow }} />
      </Meter>
    </div>
  );
}
