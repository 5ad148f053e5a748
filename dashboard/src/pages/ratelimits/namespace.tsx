import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { lazy, Suspense, useMemo, useState } from "react";
import { call, type Data, read, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { useCan } from "../../api/session.ts";
import { share } from "../../api/stats.ts";
import { Button } from "../../ui/button.tsx";
import { Figure, Figures } from "../../ui/charts/figures.tsx";
import { RatelimitChart } from "../../ui/charts/verification-chart.tsx";
import { RangePicker, useRange } from "../../ui/fields/range.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Page, Section } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { DataTable } from "../../ui/tables/data-table.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Count } from "../../ui/text/number.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";
import { ActivitySection } from "../audit/activity-section.tsx";
import { LastRefusals } from "../decisions/last-refusals.tsx";
import type { OverrideStart } from "./override-dialog.tsx";

const OverrideDialog = lazy(async () => ({
  default: (await loadCode(() => import("./override-dialog.tsx"))).OverrideDialog,
}));

const Overrides = lazy(async () => ({
  default: (await loadCode(() => import("./overrides.tsx"))).Overrides,
}));

const Descriptors = lazy(async () => ({
  default: (await loadCode(() => import("./descriptors.tsx"))).Descriptors,
}));

const LimitTester = lazy(async () => ({
  default: (await loadCode(() => import("./limit-tester.tsx"))).LimitTester,
}));

type Identifier = Data<"analytics.getRatelimitStats">["identifiers"][number];

const IDENTIFIERS_MAX = 10;

/** A namespace of rate limits: its decisions, identifiers, overrides and descriptors. */
export function NamespacePage() {
  const { namespaceId } = useParams({ from: "/shell/ratelimits/$namespaceId" });
  const { range: name = "24h" } = useSearch({ from: "/shell/ratelimits/$namespaceId" });
  const navigate = useNavigate({ from: "/ratelimits/$namespaceId" });
  const can = useCan();
  const [isChecking, setChecking] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const [override, setOverride] = useState<OverrideStart>();
  const found = useQuery({
    ...read("ratelimits.listNamespaces", { search: namespaceId }),
    enabled: can("ratelimits.*.read_namespace"),
  });
  const namespace = found.data?.find(({ id }) => id === namespaceId) ?? { id: namespaceId, name: namespaceId };
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
        <WhenSeen>
          <Overrides namespace={namespace} onEdit={setOverride} />
        </WhenSeen>
      </Section>
      <Section title="Check a limit">
        {isChecking ? (
          <Suspense fallback={<div className="skeleton h-32" />}>
            <LimitTester namespace={namespace} />
          </Suspense>
        ) : (
          <Button onPress={() => setChecking(true)}>Check an identifier…</Button>
        )}
      </Section>
      <Section title="Descriptors">
        <WhenSeen>
          <Descriptors namespaceId={namespaceId} />
        </WhenSeen>
      </Section>
      <LastRefusals about={namespaceId} />
      <ActivitySection target={namespaceId} />
      <Suspense>
        {override && (
          <OverrideDialog
            key={override.identifier}
            namespace={namespace}
            start={override}
            onClose={() => setOverride(undefined)}
          />
        )}
      </Suspense>
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
        The overrides, descriptors and counters of <strong className="font-medium">{namespace.name}</strong> are
        deleted. The next call with this name begins anew. This cannot be undone.
      </ConfirmDialog>
    </Page>
  );
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
      sort: ({ identifier }) => identifier,
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
