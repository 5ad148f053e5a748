import type { RootKey } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";
import { read, useCall } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { useCan, useSession } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import type { ListSearch } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton, Id } from "../../ui/copy-button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { ConfirmDialog } from "../../ui/dialog.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { Switch } from "../../ui/fields.tsx";
import { Filters, SearchField } from "../../ui/filters.tsx";
import { ListingWithPanel, useSearchMembers } from "../../ui/listing.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Page } from "../../ui/page.tsx";
import { Panel, useClosePanel } from "../../ui/panel.tsx";
import { StatusBadge } from "../../ui/status-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { toast, toastError } from "../../ui/toast.tsx";
import { KeyState } from "../keys/key-state.tsx";
import { CreateRootKey, EditRootKey, type Made, MadeRootKey, RotateRootKey } from "./root-key-dialogs.tsx";
import { Sessions } from "./sessions.tsx";

/** The keys that programs and people use to call the service. */
export function RootKeysPage() {
  const { q = "", open } = useSearch({ from: "/shell/root-keys" });
  const navigate = useNavigate({ from: "/root-keys" });
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<Made>();
  const needs = "rootKeys.some.read_root_key";
  const list = useRows("rootKeys.listRootKeys", q === "" ? {} : { search: q }, useCan()(needs));
  const set = useSearchMembers<ListSearch>(navigate);
  const search = useCallback((q: string) => set({ q }, true), [set]);
  const names = new Map((list.rows ?? []).map(({ rootKeyId, name }) => [rootKeyId, name || rootKeyId]));
  const create = (
    <Button kind="primary" needs="rootKeys.*.create_root_key" onPress={() => setCreating(true)}>
      <Plus aria-hidden />
      Create root key
    </Button>
  );
  return (
    <Page
      title="Root keys"
      summary="A root key authenticates a program or a person to this service. End users never see it."
      actions={create}
    >
      <Filters>
        <SearchField label="Search root keys" placeholder="Name or id" value={q} onChange={search} />
      </Filters>
      <ListingWithPanel
        of={list}
        needs={needs}
        label="Root keys"
        columns={open ? columns.filter(({ id }) => !["created", "permissions"].includes(id)) : columns}
        rowId={({ rootKeyId }) => rootKeyId}
        rowLabel={({ name, rootKeyId }) => name || rootKeyId}
        open={open}
        onOpen={(open, replace) => set({ open }, replace)}
        panel={(id, known) => <RootKeyPanel rootKeyId={id} known={known} onMade={setMade} />}
        noMatch={q === "" ? undefined : `No root key matches “${q}”`}
        empty={<EmptyState title="No root keys" action={create} />}
      />
      <div className="mt-8">
        <Sessions names={names} />
      </div>
      {isCreating && <CreateRootKey onClose={() => setCreating(false)} onMade={setMade} />}
      {made && <MadeRootKey of={made} onClose={() => setMade(undefined)} />}
    </Page>
  );
}

interface Descendants {
  readonly deletedDescendants: number;
  readonly livingDescendants: number;
}

const columns: readonly Column<RootKey>[] = [
  {
    id: "name",
    header: "Name",
    width: "minmax(9rem, 2fr)",
    card: "title",
    cell: (rootKey) => <Name of={rootKey} />,
  },
  {
    id: "state",
    header: "State",
    width: "10rem",
    cell: (rootKey) => <KeyState of={rootKey} />,
  },
  {
    id: "permissions",
    header: "Permissions",
    width: "minmax(9rem, 2fr)",
    from: "md",
    cell: ({ permissions }) =>
      permissions.includes("*") ? (
        <StatusBadge tone="warn">Everything</StatusBadge>
      ) : permissions.length === 1 ? (
        <code className="font-mono text-xs">{permissions[0]}</code>
      ) : (
        <span title={permissions.join("\n")}>{counted(permissions.length, "permission")}</span>
      ),
  },
  {
    id: "used",
    header: "Last used",
    width: "8rem",
    cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} relative />),
  },
  {
    id: "created",
    header: "Created",
    width: "8rem",
    from: "lg",
    card: "none",
    cell: ({ createdAt }) => <Time at={createdAt} relative />,
  },
];

/** What became of the root keys that a deleted one created. */
function descendantsText({ deletedDescendants, livingDescendants }: Descendants): string {
  const also = deletedDescendants > 0 ? ` Also ${counted(deletedDescendants, "root key")} that it created.` : "";
  const rest =
    livingDescendants > 0 ? ` Of those that it created, ${counted(livingDescendants, "root key")} still work.` : "";
  return also + rest;
}

function Name({ of: { rootKeyId, name } }: { of: RootKey }) {
  const { rootKey } = useSession();
  return (
    <span className="flex min-w-0 items-center gap-2">
      <span className="truncate font-medium">{name || rootKeyId}</span>
      {rootKey.keyId === rootKeyId && <span className="shrink-0 text-xs text-quiet">this session</span>}
    </span>
  );
}

function RootKeyPanel({
  rootKeyId,
  known,
  onMade,
}: {
  rootKeyId: string;
  known: RootKey | undefined;
  onMade: (made: Made) => void;
}) {
  const [dialog, setDialog] = useState<"edit" | "rotate" | "delete">();
  const [descendants, setDescendants] = useState(false);
  const update = useCall("rootKeys.updateRootKey");
  const remove = useCall("rootKeys.deleteRootKey");
  const { rootKey: own } = useSession();
  const close = useClosePanel();
  // A link can lead to a root key that the list has not loaded.
  const found = useQuery({ ...read("rootKeys.listRootKeys", { search: rootKeyId }), enabled: known === undefined });
  const rootKey = known ?? found.data?.find((other) => other.rootKeyId === rootKeyId);
  if (!rootKey) {
    return (
      <Panel title="Root key">
        {found.data ? (
          <p className="text-quiet">There is no root key with the id {rootKeyId}.</p>
        ) : (
          <Loading of={found} lines={6} />
        )}
      </Panel>
    );
  }
  const { name, start, permissions, enabled, source, createdAt, lastUsedAt, expires, leakedAt, createdBy } = rootKey;
  const isOwn = own.keyId === rootKeyId;
  const fixed = source === "environment" && "It is the root key of the configuration: change it there";
  const setEnabled = (value: boolean) =>
    update.mutate(
      { rootKeyId, enabled: value },
      {
        onSuccess: () =>
          toast({
            text: `${value ? "Enabled" : "Disabled"} the root key ${name}.`,
            undo: () => update.mutateAsync({ rootKeyId, enabled: !value }),
          }),
        onError: toastError,
      },
    );
  return (
    <Panel
      title={name || rootKeyId}
      actions={
        <>
          <Button needs={`rootKeys.${rootKeyId}.update_root_key`} offBecause={fixed} onPress={() => setDialog("edit")}>
            Edit…
          </Button>
          <Button
            needs={`rootKeys.${rootKeyId}.create_root_key`}
            offBecause={fixed}
            onPress={() => setDialog("rotate")}
          >
            Rotate…
          </Button>
          <Button
            needs={`rootKeys.${rootKeyId}.update_root_key`}
            offBecause={fixed || (isOwn && enabled && "This session uses it")}
            onPress={() => setEnabled(!enabled)}
          >
            {enabled ? "Disable" : "Enable"}
          </Button>
          <Button
            kind="danger"
            needs={`rootKeys.${rootKeyId}.delete_root_key`}
            offBecause={fixed || (isOwn && "This session uses it")}
            onPress={() => setDialog("delete")}
          >
            Delete…
          </Button>
        </>
      }
    >
      <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-y-2.5 [&>dt]:text-quiet">
        <dt>State</dt>
        <dd>
          <KeyState of={rootKey} />
        </dd>
        <dt>Id</dt>
        <dd>
          <Id id={rootKeyId} />
        </dd>
        <dt>Root key</dt>
        <dd>
          {source === "environment" ? "of the configuration" : <code className="font-mono text-xs">{start}…</code>}
        </dd>
        <dt>Last used</dt>
        <dd>{lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} relative />}</dd>
        <dt>Created</dt>
        <dd>
          <Time at={createdAt} />
        </dd>
        {createdBy !== undefined && (
          <>
            <dt>Created by</dt>
            <dd>
              <Id id={createdBy} />
            </dd>
          </>
        )}
        {leakedAt !== undefined && (
          <>
            <dt>Leaked</dt>
            <dd>
              reported <Time at={leakedAt} />
            </dd>
          </>
        )}
        <dt>Expires</dt>
        <dd>{expires === undefined ? "never" : <Time at={expires} />}</dd>
        <dt>Permissions</dt>
        <dd>
          <ul className="space-y-0.5">
            {permissions.map((permission) => (
              <li key={permission} className="font-mono text-xs">
                {permission === "*" ? "* (everything)" : permission}
              </li>
            ))}
          </ul>
        </dd>
      </dl>
      <div className="mt-4">
        <CopyButton kind="quiet" text={() => snippetsOf("rootKeys.listRootKeys", { search: rootKeyId }).curl}>
          Copy as curl
        </CopyButton>
      </div>
      {dialog === "edit" && <EditRootKey of={rootKey} onClose={() => setDialog(undefined)} />}
      {dialog === "rotate" && <RotateRootKey of={rootKey} onClose={() => setDialog(undefined)} onMade={onMade} />}
      <ConfirmDialog
        title="Delete the root key"
        action="Delete root key"
        typed={name || rootKeyId}
        isOpen={dialog === "delete"}
        onClose={() => setDialog(undefined)}
        onConfirm={async () => {
          const { data } = await remove.mutateAsync({ rootKeyId, ...(descendants && { descendants }) });
          close();
          toast({ text: `Deleted the root key ${name}.${descendantsText(data)}` });
        }}
      >
        <p>
          Programs that use <strong className="font-medium">{name || rootKeyId}</strong> are refused at once. This
          cannot be undone.
        </p>
        <div className="mt-3">
          <Switch
            label="Delete the root keys that it created too"
            description="After a leak, whoever had it may have created some. Those of this session stay."
            value={descendants}
            onChange={setDescendants}
          />
        </div>
      </ConfirmDialog>
    </Panel>
  );
}
