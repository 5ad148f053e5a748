import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type Input, read } from "../../api/client.ts";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { changedText, membersText, type Preview, reachText, valuesText } from "./plan-text.ts";

/** Typing pauses for this long before the service is asked. */
const PAUSE_MS = 200;

/** What an update of a plan would do to how many keys, read while it is edited. `input` undefined: it cannot be sent. */
export function UpdatePreview({ input }: { input: Input<"plans.previewUpdate"> | undefined }) {
  const text = useSettled(input === undefined ? "" : JSON.stringify(input));
  const { data, error } = useQuery({
    ...read("plans.previewUpdate", text === "" ? { plan: "" } : (JSON.parse(text) as Input<"plans.previewUpdate">)),
    enabled: text !== "",
    placeholderData: (before) => before,
  });
  if (text === "") return null;
  if (error) return <ErrorBox error={error} />;
  return (
    <div role="status" aria-label="What the change does" className="min-h-6">
      {data && <Changes of={data} />}
    </div>
  );
}

function Changes({ of: preview }: { of: Preview }) {
  const isComplete = preview.keys.isComplete && preview.identities.isComplete;
  if (preview.changes.length === 0) return <p className="text-quiet">It changes nothing.</p>;
  return (
    <ul className="space-y-1.5">
      {preview.changes.map((change) => (
        <li key={`${change.field} ${change.name ?? ""}`}>
          <span className="font-medium">{changedText(change)}</span>{" "}
          <span className="tabular-nums">{valuesText(change)}</span>
          <span className="block text-xs text-quiet">
            {reachText(change, isComplete)}
            {change.startsAtZero && (
              <strong className="font-medium text-warn"> · what was counted so far no longer counts</strong>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Who has a plan, in words. */
export function PlanMembers({ of: plan }: { of: string }) {
  const { data } = useQuery(read("plans.previewUpdate", { plan }));
  return <>{data && membersText(data)}</>;
}

/** A text after a pause in typing. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), text === "" ? 0 : PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
