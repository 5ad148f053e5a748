import schema from "virtual:operation/events.listEvents";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ArrowUp } from "lucide-react";
import { useMemo } from "react";
import { type Entry, type Input, read } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { member } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import type { EventsSearch } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { rangeOptions, rangeStart } from "../../ui/fields/range.tsx";
import { Panel, UnlistedPanel } from "../../ui/overlays/panel.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { FilterChip, Filters, FilterText } from "../../ui/tables/filters.tsx";
import { useSearchMembers } from "../../ui/tables/listing.tsx";
import { ListingWithPanel } from "../../ui/tables/listing-with-panel.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Time } from "../../ui/text/time.tsx";
import { text } from "../audit/changes.ts";
import { ResourceLink } from "../resource-link.tsx";
import { groupsOf } from "./event-types.ts";

type Event = Entry<"events.listEvents">;

const types = (member(schema, "types").items?.enum ?? []) as readonly Event["type"][];

/** What the filter by type can be: all types of a kind, or one. */
const typeOptions = groupsOf(types).flatMap(({ options }) => {
  const kinds = [...new Set(options.map(({ value }) => value.slice(0, value.indexOf(".") + 1)))];
  return [
    ...kinds
      .filter((kind) => options.filter(({ value }) => value.startsWith(kind)).length > 1)
      .map((kind) => ({ value: kind, label: `${kind}*` })),
    ...options,
  ];
});

/** The interval in which newer events are asked for, while the window is visible. */
const INTERVAL_MS = 5_000;
const NEWER_MAX = 100;

/** The events of the workspace, as programs and webhooks get them. */
export function EventsPage() {
  const search = useSearch({ from: "/shell/events" });
  const navigate = useNavigate({ from: "/events" });
  const needs = "events.*.read_event";
  const isAllowed = useCan()(needs);
  const filter = useFilter(search);
  const list = useRows("events.listEvents", { ...filter, order: "desc", limit: 100 }, isAllowed);
  const set = useSearchMembers<EventsSearch>(navigate);
  const newer = useNewer(filter, list.rows?.[0]?.id);
  const { open } = search;
  return (
    <Page
      title="Events"
      summary="Changes of state, and moments that no call makes, as programs and webhooks get them. The newest is first."
      actions={<CopyButton text={() => snippetsOf("events.listEvents", filter).curl}>Copy as curl</CopyButton>}
    >
      <Filters>
        <FilterChip label="Time" value={search.range} onChange={(range) => set({ range })} options={rangeOptions} />
        <FilterChip label="Type" value={search.type} onChange={(type) => set({ type })} options={typeOptions} />
        <FilterText label="Object" value={search.object} onChange={(object) => set({ object })} placeholder="key_…" />
        <span aria-live="polite">
          {newer > 0 && (
            <Button onPress={list.refetch}>
              <ArrowUp aria-hidden />
              Show {newer === NEWER_MAX ? `${NEWER_MAX} or more newer events` : counted(newer, "newer event")}
            </Button>
          )}
        </span>
      </Filters>
      <ListingWithPanel
        of={list}
        needs={needs}
        label="Events"
        columns={open === undefined ? columns : columns.filter(({ id }) => id !== "data")}
        rowId={({ id }) => id}
        rowLabel={({ type }) => type}
        open={open}
        onOpen={(open, replace) => set({ open }, replace)}
        panel={(id, event) =>
          event ? (
            <EventPanel of={event} onFilter={(change) => set({ ...change, open: undefined })} />
          ) : (
            list.rows && <UnlistedPanel id={id} />
          )
        }
        noMatch={Object.keys(filter).length > 0 ? "No event matches the filters" : undefined}
        empty={
          <EmptyState title="No events yet">
            <p>Create an API or a key: each change is an event, and appears here at once.</p>
          </EmptyState>
        }
      />
    </Page>
  );
}

function useFilter({ range, type, object }: EventsSearch): Omit<Input<"events.listEvents">, "cursor" | "limit"> {
  const start = range && rangeStart(range);
  return useMemo(() => {
    const chosen =
      type === undefined ? [] : types.filter((one) => (type.endsWith(".") ? one.startsWith(type) : one === type));
    return {
      ...(start !== undefined && { start }),
      // A type of the address that does not exist filters nothing.
      ...(chosen.length > 0 && { types: chosen }),
      ...(object && { objectId: object }),
    };
  }, [start, type, object]);
}

/** How many events there are after the newest one that is listed, at most `NEWER_MAX`. */
function useNewer(filter: Input<"events.listEvents">, newest: string | undefined): number {
  const { data } = useQuery({
    ...read("events.listEvents", { ...filter, ...(newest && { after: newest }), limit: NEWER_MAX }),
    enabled: newest !== undefined,
    refetchInterval: INTERVAL_MS,
  });
  return data?.length ?? 0;
}

const columns: readonly Column<Event>[] = [
  {
    id: "time",
    header: "Time",
    sort: ({ createdAt }) => createdAt,
    width: "8rem",
    cell: ({ createdAt }) => <Time at={createdAt} relative />,
  },
  {
    id: "type",
    header: "Type",
    sort: ({ type }) => type,
    width: "minmax(10rem, 1fr)",
    card: "title",
    cell: ({ type }) => <code className="font-mono text-xs">{type}</code>,
  },
  {
    id: "object",
    header: "Object",
    width: "minmax(11rem, 1fr)",
    cell: (event) => <code className="font-mono text-xs">{idsOf(event)[0]?.[1]}</code>,
  },
  {
    id: "data",
    header: "What",
    width: "minmax(8rem, 2fr)",
    from: "md",
    card: "none",
    cell: (event) => <span className="text-xs text-quiet">{summaryOf(event)}</span>,
  },
];

/** The ids in the data of an event by member; that of its object is first. */
function idsOf({ data }: Event): (readonly [member: string, id: string])[] {
  return Object.entries(data).flatMap(([member, value]) =>
    typeof value === "string" && (/Id$/.test(member) || member === "actor") && member !== "externalId"
      ? [[member, value] as const]
      : [],
  );
}

function summaryOf(event: Event): string {
  const ids = new Set(idsOf(event).map(([member]) => member));
  return Object.entries(event.data)
    .filter(([member]) => !ids.has(member))
    .map(([member, value]) => `${member}: ${text(member, value)}`)
    .join(", ")
    .slice(0, 200);
}

function EventPanel({ of: event, onFilter }: { of: Event; onFilter: (change: EventsSearch) => void }) {
  const { id, type, version, createdAt, data } = event;
  const { apiId } = data;
  return (
    <Panel title={type}>
      <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-y-2.5 [&>dt]:text-quiet">
        <dt>Time</dt>
        <dd>
          <Time at={createdAt} />
        </dd>
        <dt>Event</dt>
        <dd>
          <Id id={id} />
        </dd>
        <dt>Type</dt>
        <dd>
          <button type="button" className="link font-mono text-xs" onClick={() => onFilter({ type })}>
            {type}
          </button>
          <span className="text-xs text-quiet"> version {version}</span>
        </dd>
        {idsOf(event).map(([member, value]) => (
          <div key={member} className="contents [&>dt]:text-quiet">
            <dt>{member}</dt>
            <dd className="flex flex-wrap items-center justify-between gap-2">
              <ResourceLink id={value} apiId={typeof apiId === "string" ? apiId : undefined} />
              {member !== "actor" && (
                <button
                  type="button"
                  className="text-xs text-quiet hover:underline"
                  onClick={() => onFilter({ object: value })}
                >
                  All its events
                </button>
              )}
            </dd>
          </div>
        ))}
      </dl>
      <h3 className="label mt-5 mb-1.5">As programs get it</h3>
      <Code text={JSON.stringify(event, null, 2)} label="Copy the event" />
    </Panel>
  );
}
