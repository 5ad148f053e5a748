import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Entry, Input } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";

/** Identities that are shown; the others come in steps. */
const SHOWN = 10;

/** The identities with a budget or a plan. `empty`: shown if there are none. */
export function IdentitiesWith({
  of: selection,
  label,
  empty,
}: {
  of: Pick<Input<"identities.listIdentities">, "budgetId" | "plan">;
  label: string;
  empty: string;
}) {
  const isAllowed = useCan()("identities.some.read_identity");
  const list = useRows("identities.listIdentities", selection, isAllowed);
  const [shown, setShown] = useState(SHOWN);
  const { rows, onMore, hasMore } = list;
  if (!isAllowed) return <p className="text-quiet">The identities need the permission identities.*.read_identity.</p>;
  if (list.error || !rows) return <Loading of={list} lines={2} />;
  if (rows.length === 0) return <p className="text-quiet">{empty}</p>;
  const more = () => {
    setShown(rows.length);
    onMore?.();
  };
  return (
    <>
      <ul aria-label={label}>
        {rows.slice(0, shown).map(({ id, externalId }: Entry<"identities.listIdentities">) => (
          <li key={id} className="flex items-center justify-between gap-4 border-b border-line px-2 py-1.5">
            <Link to="/identities/$identityId" params={{ identityId: id }} className="truncate hover:underline">
              <bdi>{externalId}</bdi>
            </Link>
            <Id id={id} />
          </li>
        ))}
      </ul>
      {(rows.length > shown || hasMore) && (
        <div className="mt-2">
          <Button onPress={more}>
            {hasMore ? "Show more" : `Show ${counted(rows.length - shown, "more identity", "more identities")}`}
          </Button>
        </div>
      )}
    </>
  );
}
