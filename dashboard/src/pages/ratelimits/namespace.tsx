import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Plus, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { call, type Data, read, refresh, useCall } from "../../api/client.ts";
import { type Rows, usePages } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { share } from "../../api/stats.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Id } from "../../ui/copy-button.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { ConfirmDialog } from "../../ui/dialog.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { Figure, Figures } from "../../ui/figures.tsx";
import { LimitWords } from "../../ui/limit.tsx";
import { Listing } from "../../ui/listing.tsx";
import { Loading } from "../../ui/loading.tsx";
import { MoreMenu } from "../../ui/menu.tsx";
import { Count } from "../../ui/number.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { RangePicker, useRange } from "../../ui/range.tsx";
import { toast } from "../../ui/toast.tsx";
import { RatelimitChart } from "../../ui/verification-chart.tsx";
import { Activity } from "../keys/activity.tsx";
import { LimitTester } from "./limit-tester.tsx";
import { OverrideDialog, type OverrideStart } from "./override-dialog.tsx";

type Override = Data<"ratelimits.listOverrides">["overrides"][number];
type Identifier = Data<"analytics.getRatelimitStats">["identifiers"][number];

const IDENTIFIERS_MAX = 10;

/** A namespace of rate limits: its decisions, identifiers and overrides. */
export function NamespacePage() {
  const { namespaceId } = useParams({ from: "/shell/ratelimits/$namespaceId" });
  const { range: name = "24h" } = useSearch({ from: "/shell/ratelimits/$namespaceId" });
  const navigate = useNavigate({ from: "/ratelimits/$namespaceId" });
  const can = useCan();
  const [isDeleting, setDeleting] = useState(false);
  const [override, setOverride] = useState<OverrideStart>();
  const found = useQuery({
    ...read("ratelimits.listNamespaces", { search: namespaceId }),
    enabled: can("ratelimits.*.read_namespace"),
  });
  const namespace = found.data?.find(({ id }) => id === namespaceId) ?? { id: namespaceId, name: namespaceId };
  const overrides = useOverrides(namespaceId);
  const above = (
    <Link to="/ratelimits" className="hover:underline">
      Rate limits
    </Link>
  );
  if (found.data && !found.data.some(({ id }) => id === namespaceId)) {
    return (
      <Page title="Namespace" above={above}>
        <EmptyState title="There is no such namespace">
          <p>It may have been deleted. Its next use creates it again, with another id.</p>
        </EmptyState>
      </Page>
    );
  }
  return (
    <Page
      title={namespace.name}
      above={above}
      summary={<Id id={namespaceId} />}
      actions={
        <>
          <RangePicker
            value={name}
            onChange={(range) => void navigate({ search: range === "24h" ? {} : { range }, replace: true })}
          />
          <MoreMenu
            label="Actions"
            entries={[
              {
                label: "Delete the namespace…",
                isDanger: true,
                needs: `ratelimits.${namespaceId}.delete_namespace`,
                onAction: () => setDeleting(true),
              },
            ]}
          />
        </>
      }
    >
      <Decisions namespaceId={namespaceId} rangeName={name} onOverride={(identifier) => setOverride({ identifier })} />
      <Section
        title="Overrides"
        actions={
          <Button needs={`ratelimits.${namespaceId}.set_override`} onPress={() => setOverride({ identifier: "" })}>
            <Plus aria-hidden />
            Create override
          </Button>
        }
      >
        <Overrides namespace={namespace} of={overrides} onEdit={setOverride} />
      </Section>
      <Section title="Check a limit">
        <LimitTester namespace={namespace} />
      </Section>
      <Section title="Activity">
        <Activity target={namespaceId} />
      </Section>
      {override && (
        <OverrideDialog
          key={override.identifier}
          namespace={namespace}
          start={override}
          onClose={() => setOverride(undefined)}
        />
      )}
      <ConfirmDialog
        title="Delete the namespace"
        action="Delete namespace"
        typed={namespace.name}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={async () => {
          await call("ratelimits.deleteNamespace", { namespace: namespaceId });
          await navigate({ to: "/ratelimits" });
          await refresh();
          toast({ text: `Deleted the namespace ${namespace.name}.` });
        }}
      >
        The overrides and counters of <strong className="font-medium">{namespace.name}</strong> are deleted. The next
        call with this name begins anew. This cannot be undone.
      </ConfirmDialog>
    </Page>
  );
}

function useOverrides(namespace: string): Rows<Override> {
  const isAllowed = useCan()(`ratelimits.${namespace}.read_override`);
  return usePages("ratelimits.listOverrides", { namespace, limit: 100 }, isAllowed, overridesIn);
}

function overridesIn(data: unknown): readonly Override[] {
  return (data as { overrides: Override[] }).overrides;
}

function Decisions({
  namespaceId,
  rangeName,
  onOverride,
}: {
  namespaceId: string;
  rangeName: Parameters<typeof useRange>[0];
  onOverride: (identifier: string) => void;
}) {
  const range = useRange(rangeName);
  const needs = `ratelimits.${namespaceId}.read_analytics`;
  const isAllowed = useCan()(needs);
  const stats = useQuery({
    ...read("analytics.getRatelimitStats", { namespace: namespaceId, ...range }),
    enabled: isAllowed,
  });
  const columns = useMemo(() => identifierColumns(namespaceId, onOverride), [namespaceId, onOverride]);
  if (!isAllowed) return <p className="mb-4 text-quiet">The decisions need the permission {needs}.</p>;
  const { data } = stats;
  if (stats.error || !data) return <Loading of={stats} lines={8} />;
  return (
    <>
      <Figures>
        <Figure name="Decisions">
          <Count value={data.total} />
        </Figure>
        <Figure name="Passed" note={share(data.passed, data.total)}>
          <Count value={data.passed} />
        </Figure>
        <Figure name="Denied" note={share(data.denied, data.total)}>
          <Count value={data.denied} />
        </Figure>
        <Figure name="Charged cost">
          <Count value={data.cost} />
        </Figure>
      </Figures>
      <RatelimitChart of={data} label="Decisions" height={200} />
      <Section title="Most denied identifiers">
        {data.identifiers.length === 0 ? (
          <p className="text-quiet">No identifier was counted in this range.</p>
        ) : (
          <DataTable
            label="Most denied identifiers"
            columns={columns}
            rows={data.identifiers.slice(0, IDENTIFIERS_MAX)}
            rowId={({ identifier }) => identifier}
            rowLabel={({ identifier }) => identifier}
          />
        )}
      </Section>
    </>
  );
}

function identifierColumns(
  namespaceId: string,
  onOverride: (identifier: string) => void,
): readonly Column<Identifier>[] {
  return [
    {
      id: "identifier",
      header: "Identifier",
      width: "minmax(8rem, 2fr)",
      card: "title",
      cell: ({ identifier }) => <code className="font-mono text-xs">{identifier}</code>,
    },
    { id: "total", header: "Decisions", width: "6rem", align: "right", cell: ({ total }) => <Count value={total} /> },
    { id: "denied", header: "Denied", width: "6rem", align: "right", cell: ({ denied }) => <Count value={denied} /> },
    {
      id: "share",
      header: "Share",
      width: "5rem",
      align: "right",
      from: "md",
      card: "none",
      cell: ({ denied, total }) => share(denied, total),
    },
    {
      id: "override",
      header: "Override",
      width: "7rem",
      align: "right",
      cell: ({ identifier }) => (
        <Button
          className="!h-7 !px-2 text-xs"
          needs={`ratelimits.${namespaceId}.set_override`}
          aria-label={`Override ${identifier}`}
          onPress={() => onOverride(identifier)}
        >
          Override…
        </Button>
      ),
    },
  ];
}

function Overrides({
  namespace: { id, name },
  of,
  onEdit,
}: {
  namespace: { id: string; name: string };
  of: Rows<Override>;
  onEdit: (start: OverrideStart) => void;
}) {
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
      width: "minmax(7rem, 1fr)",
      cell: (override) => (override.limit === 0 ? "denies all" : <LimitWords of={override} />),
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
        onOpen={({ identifier, limit, duration, mode }) => onEdit({ identifier, window: { limit, duration, mode } })}
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
          const { identifier, limit, duration, mode } = deleted!;
          await remove.mutateAsync({ namespace: name, identifier });
          toast({
            text: `Deleted the override of ${identifier}.`,
            undo: () => set.mutateAsync({ namespace: name, identifier, limit, duration, ...(mode && { mode }) }),
          });
        }}
      >
        Calls of <code className="font-mono text-xs">{deleted?.identifier}</code> are counted against the limit that
        they send, or against another override that matches.
      </ConfirmDialog>
    </>
  );
}
