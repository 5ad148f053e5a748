import { Trash2 } from "lucide-react";
import { useState } from "react";
import { type Data, useCall } from "../../api/client.ts";
import { type Rows, usePages } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { IconButton } from "../../ui/button.tsx";
import { LimitWords } from "../../ui/charts/limit.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { Listing } from "../../ui/tables/listing.tsx";
import type { OverrideStart } from "./override-dialog.tsx";

type Override = Data<"ratelimits.listOverrides">["overrides"][number];

/** The overrides of a namespace. */
export function Overrides({
  namespace: { id, name },
  onEdit,
}: {
  namespace: { id: string; name: string };
  onEdit: (start: OverrideStart) => void;
}) {
  const of = useOverrides(id);
  const remove = useCall("ratelimits.deleteOverride");
  const set = useCall("ratelimits.setOverride");
  const [deleted, setDeleted] = useState<Override>();
  const columns: readonly Column<Override>[] = [
    {
      id: "identifier",
      header: "Identifier or pattern",
      width: "minmax(8rem, 2fr)",
      card: "title",
      cell: ({ identifier }) => <code className="font-mono text-xs">{identifier}</code>,
    },
    {
      id: "kind",
      header: "Holds for",
      width: "8rem",
      from: "md",
      card: "none",
      cell: ({ identifier }) => (identifier.includes("*") ? "a pattern" : "one identifier"),
    },
    {
      id: "limit",
      header: "Limit",
      sort: ({ limit }) => limit,
      width: "minmax(7rem, 1fr)",
      cell: (override) => (override.limit === 0 && !override.shadow ? "denies all" : <LimitWords of={override} />),
    },
    {
      id: "delete",
      header: "Delete",
      width: "4rem",
      align: "right",
      cell: (override) => (
        <IconButton
          label={`Delete the override of ${override.identifier}`}
          needs={`ratelimits.${id}.delete_override`}
          onPress={() => setDeleted(override)}
        >
          <Trash2 aria-hidden />
        </IconButton>
      ),
    },
  ];
  return (
    <>
      <Listing
        of={of}
        needs={`ratelimits.${id}.read_override`}
        label="Overrides"
        columns={columns}
        rowId={({ overrideId }) => overrideId}
        rowLabel={({ identifier }) => identifier}
        onOpen={({ identifier, limit, duration, mode, shadow }) =>
          onEdit({ identifier, window: { limit, duration, mode, shadow } })
        }
        noMatch={undefined}
        empty={
          <p className="text-quiet">
            None: every call is counted against the limit that it sends. An override replaces it for an identifier or a
            pattern such as <code className="font-mono text-xs">partner-*</code>, without a release of your program.
          </p>
        }
      />
      <ConfirmDialog
        title="Delete the override"
        action="Delete override"
        isOpen={deleted !== undefined}
        onClose={() => setDeleted(undefined)}
        onConfirm={async () => {
          const { identifier, limit, duration, mode, shadow } = deleted!;
          await remove.mutateAsync({ namespace: name, identifier });
          toast({
            text: `Deleted the override of ${identifier}.`,
            undo: () =>
              set.mutateAsync({
                namespace: name,
                identifier,
                limit,
                duration,
                ...(mode && { mode }),
                ...(shadow !== undefined && { shadow }),
              }),
          });
        }}
      >
        Calls of <code className="font-mono text-xs">{deleted?.identifier}</code> are counted against the limit that
        they send, or against another override that matches.
      </ConfirmDialog>
    </>
  );
}

function useOverrides(namespace: string): Rows<Override> {
  const isAllowed = useCan()(`ratelimits.${namespace}.read_override`);
  return usePages("ratelimits.listOverrides", { namespace, limit: 100 }, isAllowed, overridesIn);
}

function overridesIn(data: unknown): readonly Override[] {
  return (data as { overrides: Override[] }).overrides;
}
