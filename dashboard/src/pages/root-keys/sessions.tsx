import type { Session } from "@latchkey/sdk";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call, refresh } from "../../api/client.ts";
import { useRows } from "../../api/rows.ts";
import { forgetSession, useCan, useSession } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Section } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { Listing } from "../../ui/tables/listing.tsx";
import { Time } from "../../ui/text/time.tsx";

/** `Chrome on Linux`, as far as a browser says so. */
export function browserName(userAgent: string): string {
  const browser = (
    [
      [/Firefox\//, "Firefox"],
      [/Edg\//, "Edge"],
      [/Chrome\//, "Chrome"],
      [/Safari\//, "Safari"],
    ] as const
  ).find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = /Windows|Android|iPhone|iPad|Mac OS|Linux/.exec(userAgent)?.[0];
  if (browser === undefined) return userAgent.slice(0, 40) || "unknown";
  return system === undefined ? browser : `${browser} on ${system.replace("Mac OS", "macOS")}`;
}

/** The browsers that are signed in, which can be signed out. */
export function Sessions({ names }: { names: ReadonlyMap<string, string> }) {
  const { sessionId: own } = useSession();
  const navigate = useNavigate();
  const [ended, setEnded] = useState<Session>();
  const needs = "rootKeys.some.read_root_key";
  const list = useRows("rootKeys.listSessions", {}, useCan()(needs));
  const columns: readonly Column<Session>[] = [
    {
      id: "rootKey",
      header: "Root key",
      width: "minmax(9rem, 2fr)",
      card: "title",
      cell: ({ rootKeyId, sessionId }) => (
        <span className="flex min-w-0 items-center gap-2">
          <span className="truncate">{names.get(rootKeyId) ?? rootKeyId}</span>
          {sessionId === own && <span className="shrink-0 text-xs text-quiet">this browser</span>}
        </span>
      ),
    },
    {
      id: "browser",
      header: "Browser",
      width: "minmax(9rem, 1fr)",
      cell: ({ userAgent }) => <span title={userAgent}>{browserName(userAgent)}</span>,
    },
    {
      id: "address",
      header: "Address",
      sort: ({ address }) => address,
      width: "10rem",
      from: "lg",
      card: "none",
      cell: ({ address }) => <code className="font-mono text-xs">{address}</code>,
    },
    {
      id: "used",
      header: "Last used",
      sort: ({ lastUsedAt }) => lastUsedAt,
      width: "8rem",
      cell: ({ lastUsedAt }) => <Time at={lastUsedAt} relative />,
    },
    {
      id: "expires",
      header: "Ends unless used",
      sort: ({ expiresAt }) => expiresAt,
      width: "9rem",
      from: "md",
      cell: ({ expiresAt }) => <Time at={expiresAt} relative />,
    },
    {
      id: "end",
      header: "Sign out",
      width: "7rem",
      align: "right",
      cell: (session) => (
        <Button
          className="!h-7 !px-2 text-xs"
          needs={`rootKeys.${session.rootKeyId}.update_root_key`}
          onPress={() => setEnded(session)}
        >
          Sign out…
        </Button>
      ),
    },
  ];
  return (
    <Section title="Sessions of the dashboard">
      <Listing
        of={list}
        needs={needs}
        label="Sessions"
        columns={columns}
        rowId={({ sessionId }) => sessionId}
        rowLabel={({ rootKeyId }) => `Session of ${names.get(rootKeyId) ?? rootKeyId}`}
        noMatch={undefined}
        empty={<p className="text-quiet">No browser is signed in.</p>}
      />
      <ConfirmDialog
        title="Sign out"
        action="Sign out"
        isOpen={ended !== undefined}
        onClose={() => setEnded(undefined)}
        onConfirm={async () => {
          const { rootKeyId, sessionId } = ended!;
          await call("rootKeys.deleteSessions", { rootKeyId, sessionId });
          if (sessionId === own) {
            forgetSession();
            await navigate({ to: "/sign-in" });
            return;
          }
          await refresh();
          toast({ text: "The session has ended." });
        }}
      >
        {ended?.sessionId === own
          ? "This browser is signed out. Its root key stays valid."
          : "The browser of this session must sign in again. Its root key stays valid."}
      </ConfirmDialog>
    </Section>
  );
}
