import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { exactNumber } from "../../api/format.ts";
import type { Needs } from "../../ui/button.tsx";
import type { ConcurrencyInput } from "../../ui/fields/concurrency-field.tsx";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { Fact, None } from "../../ui/page.tsx";

const ConcurrencyEditor = lazyRouteComponent(
  () => loadCode(() => import("./concurrency-editor.tsx")),
  "ConcurrencyEditor",
);

/** How many calls of a key or of an identity run at once, edited in place. */
export function ConcurrencyFact({
  of: limits = [],
  needs,
  save,
}: {
  of: readonly ConcurrencyInput[] | undefined;
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

export function Concurrency({ of: limits }: { of: readonly ConcurrencyInput[] }) {
  return (
    <ul className="space-y-1">
      {limits.map(({ name, limit }) => (
        <li key={name} className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium">{name}</span>
          <span className="tabular-nums">{exactNumber(limit)} at once</span>
        </li>
      ))}
    </ul>
  );
}
