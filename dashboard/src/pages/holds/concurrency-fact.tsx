import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { exactNumber } from "../../api/format.ts";
import type { Needs } from "../../ui/button.tsx";
import { Meter } from "../../ui/charts/meter.tsx";
import type { ConcurrencyInput } from "../../ui/fields/concurrency-field.tsx";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { Fact, None } from "../../ui/page.tsx";

const ConcurrencyEditor = lazyRouteComponent(
  () => loadCode(() => import("./concurrency-editor.tsx")),
  "ConcurrencyEditor",
);

/** A limit with the number of calls that run now, if it was read. */
type ShownLimit = ConcurrencyInput & { readonly inUse?: number | undefined };

/** How many calls of a key or of an identity run at once, edited in place. */
export function ConcurrencyFact({
  of: limits = [],
  needs,
  save,
}: {
  of: readonly ShownLimit[] | undefined;
  needs: Needs;
  /** Null: no limit. */
  save: (concurrency: ConcurrencyInput[] | null) => Promise<unknown>;
}) {
  return (
    <Fact name="Calls at once">
      <EditInPlace
        label="how many calls run at once"
        needs={needs}
        display={limits.length === 0 ? <None text="unlimited" /> : <Concurrency of={limits} />}
        editor={(onClose) => <ConcurrencyEditor before={limits} save={save} onClose={onClose} />}
      />
    </Fact>
  );
}

/** Limits with how many of their slots are in use. */
export function Concurrency({ of: limits }: { of: readonly ShownLimit[] }) {
  return (
    <ul className="max-w-md space-y-2">
      {limits.map(({ name, limit, inUse = 0 }) => (
        <li key={name}>
          <Meter label={`Slots of ${name} in use`} used={inUse} max={limit} note={noteOf(inUse, limit)}>
            <span className="text-sm font-medium">{name}</span> {exactNumber(inUse)} of {exactNumber(limit)} at once
          </Meter>
        </li>
      ))}
    </ul>
  );
}

/** What a bar that is full does not say. */
function noteOf(inUse: number, limit: number): string | false {
  if (inUse < limit) return false;
  return inUse === limit ? "full" : `full, ${exactNumber(inUse - limit)} too many`;
}
