import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { call, type Entry, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { Listing } from "../../ui/tables/listing.tsx";
import { Time } from "../../ui/text/time.tsx";

const CreateSession = lazy(async () => ({
  default: (await loadCode(() => import("./create-session.tsx"))).CreateSession,
}));

type PortalSession = Entry<"portal.listPortalSessions">;

/** The sessions of an API in which owners manage their keys: creates and ends them. */
export function PortalSessions({ apiId }: { apiId: string }) {
  const [isCreating, setCreating] = useState(false);
  const [ended, setEnded] = useState<PortalSession>();
  const needs = `apis.${apiId}.read_portal_session`;
  const list = useRows("portal.listPortalSessions", { apiId }, useCan()(needs));
  const columns: readonly Column<PortalSession>[] = [
    {
      id: "owner",
      header: "Owner",
      width: "minmax(8rem, 1fr)",
      card: "title",
      cell: ({ identityId, externalId }) => (
        <Link to="/identities/$identityId" params={{ identityId }} className="truncate hover:underline">
          {externalId}
        </Link>
      ),
    },
    {
      id: "actions",
      header: "May",
      width: "minmax(10rem, 2fr)",
      cell: ({ actions }) => actions.join(", "),
    },
    { id: "ends", header: "Ends", width: "8rem", cell: ({ expiresAt }) => <Time at={expiresAt} relative /> },
    {
      id: "end",
      header: "End",
      width: "5rem",
      align: "right",
      cell: (session) => (
        <Button
          className="!h-7 !px-2 text-xs"
          aria-label={`End the session of ${session.externalId}`}
          needs={`apis.${apiId}.delete_portal_session`}
          onPress={() => setEnded(session)}
        >
          End…
        </Button>
      ),
    },
  ];
  return (
    <div className="mt-6 space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h3 className="font-medium">Sessions of the portal</h3>
        <Button needs={`apis.${apiId}.create_portal_session`} onPress={() => setCreating(true)}>
          Create session…
        </Button>
      </div>
      <Listing
        of={list}
        needs={needs}
        label="Sessions of the portal"
        columns={columns}
        rowId={({ sessionId }) => sessionId}
        rowLabel={({ externalId }) => `Session of ${externalId}`}
        noMatch={undefined}
        empty={
          <p className="text-quiet">
            No owner has one now. In a session, the owner of keys manages them on a page of this service, in your name.
            Your server creates them with portal.createSession.
          </p>
        }
      />
      <Suspense>{isCreating && <CreateSession apiId={apiId} onClose={() => setCreating(false)} />}</Suspense>
      <ConfirmDialog
        title="End the session"
        action="End session"
        isOpen={ended !== undefined}
        onClose={() => setEnded(undefined)}
        onConfirm={async () => {
          const { sessionId, externalId } = ended!;
          await call("portal.deletePortalSessions", { apiId, sessionId });
          await refresh();
          toast({ text: `The session of ${externalId} has ended.` });
        }}
      >
        The page that <strong className="font-medium">{ended?.externalId}</strong> has open stops working at once. The
        keys stay as they are.
      </ConfirmDialog>
    </div>
  );
}
