import createSchema from "virtual:operation/workspaces.createWorkspace";
import type { Workspace } from "@latchkey/sdk";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useCall } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { useCan, useSession } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { SearchedListing, useSearchChange } from "../../ui/tables/searched-listing.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { StatusBadge } from "../../ui/text/status-badge.tsx";
import { Time } from "../../ui/text/time.tsx";
import { type Made, MadeRootKey } from "../root-keys/root-key-dialogs.tsx";

/** The workspaces of the service. Only root keys of the default workspace may manage them. */
export function WorkspacesPage() {
  const { q = "" } = useSearch({ from: "/shell/workspaces" });
  const navigate = useNavigate({ from: "/workspaces" });
  const [edited, setEdited] = useState<Workspace | "new">();
  const [disabled, setDisabled] = useState<Workspace>();
  const [made, setMade] = useState<Made>();
  const { workspace: own } = useSession();
  const update = useCall("workspaces.updateWorkspace");
  const needs = "workspaces.*.read_workspace";
  const list = useRows("workspaces.listWorkspaces", q === "" ? {} : { search: q }, useCan()(needs));
  const onSearch = useSearchChange(navigate);
  const create = (
    <Button kind="primary" needs="workspaces.*.create_workspace" onPress={() => setEdited("new")}>
      <Plus aria-hidden />
      Create workspace
    </Button>
  );
  const enable = ({ workspaceId, name }: Workspace) =>
    update.mutate(
      { workspaceId, enabled: true },
      { onSuccess: () => toast({ text: `Enabled the workspace ${name}.` }), onError: toastError },
    );
  const columns: readonly Column<Workspace>[] = [
    {
      id: "name",
      header: "Name",
      sort: ({ name }) => name,
      width: "minmax(10rem, 2fr)",
      card: "title",
      cell: ({ name, default: isDefault, workspaceId }) => (
        <span className="flex min-w-0 items-center gap-2">
          <span className="truncate font-medium">{name}</span>
          {isDefault && <span className="shrink-0 text-xs text-quiet">manages the others</span>}
          {workspaceId === own.id && <span className="shrink-0 text-xs text-quiet">this one</span>}
        </span>
      ),
    },
    {
      id: "id",
      header: "Id",
      width: "minmax(13rem, 1fr)",
      from: "md",
      cell: ({ workspaceId }) => <Id id={workspaceId} />,
    },
    {
      id: "state",
      header: "State",
      width: "7rem",
      cell: ({ enabled }) => (
        <StatusBadge tone={enabled ? "good" : "neutral"}>{enabled ? "Enabled" : "Disabled"}</StatusBadge>
      ),
    },
    {
      id: "rate",
      header: "Requests per minute",
      sort: ({ requestsPerMinute }) => requestsPerMinute,
      width: "10rem",
      align: "right",
      from: "md",
      cell: ({ requestsPerMinute }) => (requestsPerMinute === undefined ? "unlimited" : exactNumber(requestsPerMinute)),
    },
    {
      id: "created",
      header: "Created",
      sort: ({ createdAt }) => createdAt,
      align: "right",
      width: "8rem",
      from: "lg",
      card: "none",
      cell: ({ createdAt }) => <Time at={createdAt} relative />,
    },
    {
      id: "change",
      header: "Change",
      width: "11rem",
      align: "right",
      cell: (workspace) => (
        <span className="inline-flex gap-1.5">
          <Button
            className="!h-7 !px-2 text-xs"
            needs="workspaces.*.update_workspace"
            aria-label={`Edit ${workspace.name}`}
            onPress={() => setEdited(workspace)}
          >
            Edit…
          </Button>
          <Button
            className="!h-7 !px-2 text-xs"
            needs="workspaces.*.update_workspace"
            offBecause={workspace.default && "The default workspace cannot be disabled"}
            aria-label={`${workspace.enabled ? "Disable" : "Enable"} ${workspace.name}`}
            onPress={() => (workspace.enabled ? setDisabled(workspace) : enable(workspace))}
          >
            {workspace.enabled ? "Disable…" : "Enable"}
          </Button>
        </span>
      ),
    },
  ];
  return (
    <Page
      title="Workspaces"
      summary="A workspace is one tenant: its APIs, keys and root keys are invisible to the others."
      actions={create}
    >
      <SearchedListing
        one="workspace"
        many="workspaces"
        placeholder="Name or id"
        search={q}
        onSearch={onSearch}
        of={list}
        needs={needs}
        columns={columns}
        rowId={({ workspaceId }) => workspaceId}
        rowLabel={({ name }) => name}
        empty={<EmptyState title="No workspaces" action={create} />}
      />
      {edited !== undefined && (
        <WorkspaceDialog
          of={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onMade={setMade}
        />
      )}
      {made && <MadeRootKey of={made} onClose={() => setMade(undefined)} />}
      <ConfirmDialog
        title="Disable the workspace"
        action="Disable workspace"
        typed={disabled?.name ?? ""}
        isOpen={disabled !== undefined}
        onClose={() => setDisabled(undefined)}
        onConfirm={async () => {
          await update.mutateAsync({ workspaceId: disabled!.workspaceId, enabled: false });
          toast({ text: `Disabled the workspace ${disabled!.name}.` });
        }}
      >
        Its root keys are refused and none of its keys is valid until{" "}
        <strong className="font-medium">{disabled?.name}</strong> is enabled again.
      </ConfirmDialog>
    </Page>
  );
}

function WorkspaceDialog({
  of: before,
  onClose,
  onMade,
}: {
  of: Workspace | undefined;
  onClose: () => void;
  onMade: (made: Made) => void;
}) {
  const [name, setName] = useState(before?.name ?? "");
  const [rate, setRate] = useState(before?.requestsPerMinute === undefined ? "" : String(before.requestsPerMinute));
  const nameProblem = textProblem(member(createSchema, "name"), name);
  const requestsPerMinute = rate === "" ? undefined : Number(rate);
  const rateProblem =
    requestsPerMinute === undefined
      ? undefined
      : numberProblem(member(createSchema, "requestsPerMinute"), requestsPerMinute);
  const problem = (name === "" ? "Enter a name" : nameProblem) ?? rateProblem;
  const fields = (
    <>
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        problem={name === "" ? undefined : nameProblem}
        placeholder="Acme staging"
        autoFocus
      />
      <TextField
        label="Requests per minute"
        type="number"
        description="Of all its root keys together. Empty: unlimited."
        value={rate}
        onChange={setRate}
        problem={rateProblem}
      />
    </>
  );
  if (before) {
    return (
      <FormDialog
        title={`Edit ${before.name}`}
        operation="workspaces.updateWorkspace"
        input={{ workspaceId: before.workspaceId, name, requestsPerMinute: requestsPerMinute ?? null }}
        problem={problem}
        action="Save workspace"
        needs="workspaces.*.update_workspace"
        size="sm"
        onClose={onClose}
        onDone={() => {
          onClose();
          toast({ text: `Saved the workspace ${name}.` });
        }}
      >
        {fields}
      </FormDialog>
    );
  }
  return (
    <FormDialog
      title="Create workspace"
      operation="workspaces.createWorkspace"
      input={{ name, ...(requestsPerMinute !== undefined && { requestsPerMinute }) }}
      problem={problem}
      action="Create workspace"
      needs="workspaces.*.create_workspace"
      size="sm"
      onClose={onClose}
      onDone={({ data: { key } }) => {
        onClose();
        onMade({ title: `The administrator of ${name}`, secret: key });
      }}
    >
      {fields}
    </FormDialog>
  );
}
