import type { AuditEvent } from "@latchkey/sdk";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { useMemo } from "react";
import { type Input, latchkey } from "../../api/client.ts";
import { csvText, save } from "../../api/csv.ts";
import { counted } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import type { AuditSearch } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { rangeOptions, rangeStart } from "../../ui/fields/range.tsx";
import { Menu } from "../../ui/overlays/menu.tsx";
import { Panel, UnlistedPanel } from "../../ui/overlays/panel.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { FilterChip, Filters, FilterText } from "../../ui/tables/filters.tsx";
import { useSearchMembers } from "../../ui/tables/listing.tsx";
import { ListingWithPanel } from "../../ui/tables/listing-with-panel.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Time } from "../../ui/text/time.tsx";
import { aboutFilter } from "../decisions/decision.ts";
import { ResourceLink } from "../resource-link.tsx";
import { Actor, useActorNames } from "./actor.tsx";
import { changesOf, text } from "./changes.ts";
import { ChangesTable } from "./changes-table.tsx";

/** Events of an exported file. */
const EXPORTED_MAX = 50_000;

/** Every change in the workspace. */
export function AuditPage() {
  const search = useSearch({ from: "/shell/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const needs = "audit.*.read_event";
  const isAllowed = useCan()(needs);
  const filter = useFilter(search);
  const list = useRows("audit.listEvents", { ...filter, limit: 100 }, isAllowed);
  const names = useActorNames();
  const set = useSearchMembers<AuditSearch>(navigate);
  const { open } = search;
  const hasFilter = Object.keys(filter).length > 0;
  const columns = useMemo(() => columnsOf(names, open !== undefined), [names, open]);
  return (
    <Page
      title="Audit log"
      summary="Every change, and every decryption of a key, with who made it. The newest is first."
      actions={
        <>
          <CopyButton text={() => snippetsOf("audit.listEvents", filter).curl}>Copy as curl</CopyButton>
          <Menu
            label="Export"
            trigger={(opener) => (
              <Button {...opener} needs={needs}>
                <Download aria-hidden />
                Export
              </Button>
            )}
            entries={[
              { label: "As CSV", onAction: () => void exportEvents(filter, "csv") },
              { label: "As JSON", onAction: () => void exportEvents(filter, "json") },
            ]}
          />
        </>
      }
    >
      <Filters>
        <FilterChip label="Time" value={search.range} onChange={(range) => set({ range })} options={rangeOptions} />
        <FilterText
          label="Action"
          value={search.action}
          onChange={(action) => set({ action })}
          placeholder="keys.createKey"
        />
        <FilterText label="Actor" value={search.actor} onChange={(actor) => set({ actor })} placeholder="rk_…" />
        <FilterText label="Target" value={search.target} onChange={(target) => set({ target })} placeholder="key_…" />
      </Filters>
      <ListingWithPanel
        of={list}
        needs={needs}
        label="Events"
        columns={columns}
        rowId={({ id }) => id}
        rowLabel={({ action }) => action}
        open={open}
        onOpen={(open, replace) => set({ open }, replace)}
        panel={(id, event) =>
          event ? (
            <EventPanel
              of={event}
              actor={names.get(event.actor) ?? event.actor}
              onFilter={(change) => set({ ...change, open: undefined })}
            />
          ) : (
            list.rows && <UnlistedPanel id={id} />
          )
        }
        noMatch={hasFilter ? "No event matches the filters" : undefined}
        empty={
          <EmptyState title="No changes yet">
            <p>What programs and people change in this workspace appears here.</p>
          </EmptyState>
        }
      />
    </Page>
  );
}

function useFilter({ range, actor, action, target }: AuditSearch): Omit<Input<"audit.listEvents">, "cursor" | "limit"> {
  const start = range && rangeStart(range);
  return useMemo(
    () => ({
      ...(start !== undefined && { start }),
      ...(actor && { actor }),
      ...(action && { action }),
      ...(target && { target }),
    }),
    [start, actor, action, target],
  );
}

function columnsOf(names: ReadonlyMap<string, string>, isNarrow: boolean): readonly Column<AuditEvent>[] {
  const columns: Column<AuditEvent>[] = [
    { id: "time", header: "Time", width: "8rem", cell: ({ occurredAt }) => <Time at={occurredAt} relative /> },
    {
      id: "action",
      header: "Action",
      width: "minmax(12rem, 1fr)",
      card: "title",
      cell: ({ action }) => <code className="font-mono text-xs">{action}</code>,
    },
    {
      id: "actor",
      header: "Actor",
      width: "minmax(8rem, 1fr)",
      cell: ({ actor }) => <Actor id={actor} names={names} />,
    },
    {
      id: "target",
      header: "Target",
      width: "minmax(11rem, 1fr)",
      from: "md",
      cell: ({ targets }) => (
        <span className="min-w-0 truncate">
          <code className="font-mono text-xs">{targets[0]}</code>
          {targets.length > 1 && <span className="text-xs text-quiet"> +{targets.length - 1}</span>}
        </span>
      ),
    },
    {
      id: "meta",
      header: "What",
      width: "minmax(8rem, 2fr)",
      from: "lg",
      cell: (event) => <span className="min-w-0 truncate text-xs text-quiet">{summaryOf(event)}</span>,
    },
  ];
  return isNarrow ? columns.filter(({ id }) => id !== "meta" && id !== "target") : columns;
}

function summaryOf(event: AuditEvent): string {
  return changesOf(event)
    .map(({ member, after }) => (after === undefined ? member : `${member}: ${text(member, after)}`))
    .join(", ")
    .slice(0, 200);
}

function EventPanel({
  of: event,
  actor,
  onFilter,
}: {
  of: AuditEvent;
  actor: string;
  onFilter: (change: AuditSearch) => void;
}) {
  const { id, occurredAt, action, targets, meta } = event;
  return (
    <Panel title={action}>
      <dl className="grid grid-cols-[6rem_minmax(0,1fr)] gap-y-2.5 [&>dt]:text-quiet">
        <dt>Time</dt>
        <dd>
          <Time at={occurredAt} />
        </dd>
        <dt>Actor</dt>
        <dd>
          <button type="button" className="link" onClick={() => onFilter({ actor: event.actor })}>
            {actor}
          </button>
        </dd>
        {typeof meta.session === "string" && (
          <>
            <dt>Session</dt>
            <dd>
              <Id id={meta.session} />
            </dd>
          </>
        )}
        <dt>Event</dt>
        <dd>
          <Id id={id} />
        </dd>
        <dt>{targets.length === 1 ? "Target" : "Targets"}</dt>
        <dd>
          <ul className="space-y-1">
            {targets.slice(0, 20).map((target) => (
              <li key={target}>
                <Target of={target} among={targets} onFilter={() => onFilter({ target })} />
              </li>
            ))}
            {targets.length > 20 && <li className="text-xs text-quiet">and {targets.length - 20} more</li>}
          </ul>
        </dd>
      </dl>
      <h3 className="label mt-5 mb-1.5">Before and after</h3>
      <ChangesTable of={event} />
      <h3 className="label mt-5 mb-1.5">As recorded</h3>
      <Code text={JSON.stringify(meta, null, 2)} label="Copy what was recorded" />
    </Panel>
  );
}

/** A resource of an event: a link to its page if it has one, and a filter for its events. */
function Target({ of: id, among, onFilter }: { of: string; among: readonly string[]; onFilter: () => void }) {
  return (
    <span className="flex flex-wrap items-center justify-between gap-2">
      <ResourceLink id={id} apiId={among.find((target) => target.startsWith("api_"))} />
      <span className="flex flex-wrap gap-x-3 text-xs text-quiet">
        {aboutFilter(id) && (
          <Link to="/decisions" search={{ about: id }} className="hover:underline">
            Its decisions
          </Link>
        )}
        <button type="button" className="hover:underline" onClick={onFilter}>
          All its events
        </button>
      </span>
    </span>
  );
}

async function exportEvents(filter: Input<"audit.listEvents">, format: "csv" | "json"): Promise<void> {
  try {
    toast({ text: "Reading the events. The file is saved when all were read." });
    const events: AuditEvent[] = [];
    for await (const event of latchkey.audit.listEvents.all({ ...filter, limit: 100 })) {
      events.push(event);
      if (events.length === EXPORTED_MAX) break;
    }
    const content = format === "json" ? `${JSON.stringify(events, null, 2)}\n` : csvOf(events);
    save(content, `audit-log.${format}`, format === "json" ? "application/json" : "text/csv");
    toast({ text: `Saved ${counted(events.length, "event")}.` });
  } catch (error) {
    toastError(error);
  }
}

/** Events as lines of CSV. */
export function csvOf(events: readonly AuditEvent[]): string {
  const rows = events.map(({ id, occurredAt, actor, action, targets, meta }) => [
    new Date(occurredAt).toISOString(),
    action,
    actor,
    targets.join(" "),
    JSON.stringify(meta),
    id,
  ]);
  return csvText([["time", "action", "actor", "targets", "meta", "id"], ...rows]);
}
