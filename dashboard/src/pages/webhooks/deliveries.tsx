import type { Webhook, WebhookDelivery } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Clock } from "lucide-react";
import { useEffect, useRef } from "react";
import { type Entry, type Input, queryClient, read, useCall } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { type DeliveryStatus, deliveryStatuses, type WebhookSearch } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { Panel } from "../../ui/overlays/panel.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { Section } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { FilterChip, Filters } from "../../ui/tables/filters.tsx";
import { useSearchMembers } from "../../ui/tables/listing.tsx";
import { ListingWithPanel } from "../../ui/tables/listing-with-panel.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { StatusBadge } from "../../ui/text/status-badge.tsx";
import { Time } from "../../ui/text/time.tsx";
import { ResourceLink } from "../resource-link.tsx";

const statusLabels: Readonly<Record<DeliveryStatus, string>> = {
  pending: "Waiting",
  delivered: "Delivered",
  dead: "Dead",
};

/** The deliveries of a webhook, the newest event first, and the one that is open. `interval`: they change meanwhile. */
export function Deliveries({
  of: webhook,
  interval,
  onStart,
}: {
  of: Webhook;
  interval: number | false;
  onStart: () => void;
}) {
  const { webhookId } = webhook;
  const { status, open } = useSearch({ from: "/shell/webhooks/$webhookId" });
  const navigate = useNavigate({ from: "/webhooks/$webhookId" });
  const filter = { webhookId, ...(status && { status }) };
  const list = useRows("webhooks.listDeliveries", { ...filter, limit: 100 }, true, interval);
  const set = useSearchMembers<WebhookSearch>(navigate);
  // What ended since the last reading is read once more.
  const wasUnderWay = useRef(false);
  useEffect(() => {
    if (wasUnderWay.current && interval === false) {
      void queryClient.invalidateQueries({ queryKey: ["webhooks.listDeliveries"] });
    }
    wasUnderWay.current = interval !== false;
  }, [interval]);
  return (
    <Section
      title="Deliveries"
      actions={
        <CopyButton kind="quiet" text={() => snippetsOf("webhooks.listDeliveries", filter).curl}>
          Copy as curl
        </CopyButton>
      }
    >
      <Filters>
        <FilterChip
          label="State"
          value={status}
          onChange={(status) => set({ status })}
          options={deliveryStatuses.map((value) => ({ value, label: statusLabels[value] }))}
        />
      </Filters>
      <ListingWithPanel
        of={list}
        needs={`webhooks.${webhookId}.read_webhook`}
        label="Deliveries"
        columns={open ? columns.filter(({ id }) => !["object", "duration"].includes(id)) : columns}
        rowId={({ eventId, objectId, createdAt }) => eventId ?? `${objectId} ${createdAt}`}
        rowLabel={({ type, status }) => `${type ?? "An event"}, ${statusLabels[status]}`}
        open={open}
        onOpen={(open, replace) => set({ open }, replace)}
        panel={(id) => <DeliveryPanel of={webhook} eventId={id} interval={interval} onStart={onStart} />}
        noMatch={status && `No delivery is in the state “${statusLabels[status]}”`}
        empty={
          <EmptyState title="No deliveries yet">
            <p>Send a test, or change something of which the webhook gets events. Deliveries appear within seconds.</p>
          </EmptyState>
        }
      />
    </Section>
  );
}

const columns: readonly Column<WebhookDelivery>[] = [
  {
    id: "time",
    header: "Time",
    sort: ({ createdAt }) => createdAt,
    width: "7rem",
    cell: ({ createdAt }) => <Time at={createdAt} relative />,
  },
  {
    id: "type",
    header: "Event",
    sort: ({ type }) => type,
    width: "minmax(9rem, 1fr)",
    card: "title",
    cell: ({ type }) => <code className="font-mono text-xs">{type ?? "an event that is gone"}</code>,
  },
  {
    id: "object",
    header: "Object",
    width: "minmax(11rem, 1fr)",
    from: "lg",
    card: "none",
    cell: ({ objectId }) => <code className="font-mono text-xs">{objectId}</code>,
  },
  {
    id: "state",
    header: "State",
    sort: ({ status }) => status,
    width: "7rem",
    cell: ({ status }) => <DeliveryState of={status} />,
  },
  {
    id: "attempts",
    header: "Attempts",
    width: "5rem",
    align: "right",
    from: "md",
    cell: ({ attempts }) => exactNumber(attempts),
  },
  {
    id: "answer",
    header: "Answer",
    width: "minmax(6rem, 1fr)",
    cell: (delivery) => (
      <span title={faultOf(delivery)}>{delivery.lastAttempt?.status ?? faultOf(delivery) ?? "–"}</span>
    ),
  },
  {
    id: "duration",
    header: "Duration",
    width: "6rem",
    align: "right",
    from: "md",
    card: "none",
    cell: ({ lastAttempt }) => (lastAttempt ? `${exactNumber(lastAttempt.duration)} ms` : "–"),
  },
];

function DeliveryState({ of: status }: { of: DeliveryStatus }) {
  const label = statusLabels[status];
  if (status === "delivered") return <StatusBadge tone="good">{label}</StatusBadge>;
  if (status === "dead") return <StatusBadge tone="bad">{label}</StatusBadge>;
  return (
    <StatusBadge tone="warn" icon={Clock}>
      {label}
    </StatusBadge>
  );
}

function faultOf({ lastAttempt, error }: WebhookDelivery): string | undefined {
  return lastAttempt ? lastAttempt.error : error;
}

/** One delivery with its event. It is read by itself: a link can lead to one that the list has not loaded. */
function DeliveryPanel({
  of: { webhookId, enabled },
  eventId,
  interval,
  onStart,
}: {
  of: Webhook;
  eventId: string;
  interval: number | false;
  onStart: () => void;
}) {
  const redeliver = useCall("webhooks.redeliver");
  const found = useQuery({
    ...read("webhooks.listDeliveries", { webhookId, eventId }),
    refetchInterval: interval,
  });
  const delivery = found.data?.[0];
  const event = useEvent(delivery);
  const apiId = event?.data.apiId;
  if (!delivery) {
    return (
      <Panel title="Delivery">
        {found.data && !interval ? (
          <p className="text-quiet">This webhook did not get the event, or it is older than the retention.</p>
        ) : (
          <Loading of={found} lines={6} />
        )}
      </Panel>
    );
  }
  const {
    type = "An event",
    objectId,
    status,
    attempts,
    createdAt,
    nextAttemptAt,
    completedAt,
    lastAttempt,
  } = delivery;
  const fault = faultOf(delivery);
  const send = () =>
    redeliver.mutate(
      { webhookId, eventId },
      {
        onSuccess: () => {
          onStart();
          toast({ text: `${type} is sent again.` });
        },
        onError: toastError,
      },
    );
  return (
    <Panel
      title={type}
      actions={
        <Button
          needs={`webhooks.${webhookId}.update_webhook`}
          offBecause={!enabled && "The webhook is disabled: enable it first"}
          onPress={send}
          isPending={redeliver.isPending}
        >
          {status === "pending" ? "Try now" : "Send again"}
        </Button>
      }
    >
      <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-y-2.5 [&>dt]:text-quiet">
        <dt>State</dt>
        <dd>
          <DeliveryState of={status} />
        </dd>
        <dt>Event</dt>
        <dd>
          <Id id={eventId} />
        </dd>
        <dt>Object</dt>
        <dd>
          <ResourceLink id={objectId} apiId={typeof apiId === "string" ? apiId : undefined} />
        </dd>
        <dt>Since</dt>
        <dd>
          <Time at={createdAt} />
        </dd>
        <dt>Attempts</dt>
        <dd>{exactNumber(attempts)}</dd>
        {status === "pending" && (
          <>
            <dt>Next attempt</dt>
            <dd>
              {nextAttemptAt === undefined ? (
                "after an earlier event of the object"
              ) : enabled ? (
                <Time at={nextAttemptAt} relative />
              ) : (
                "when the webhook is enabled"
              )}
            </dd>
          </>
        )}
        {completedAt !== undefined && (
          <>
            <dt>{status === "dead" ? "Given up" : "Delivered"}</dt>
            <dd>
              <Time at={completedAt} />
            </dd>
          </>
        )}
        {lastAttempt && (
          <>
            <dt>Last attempt</dt>
            <dd>
              <Time at={lastAttempt.at} />, {exactNumber(lastAttempt.duration)} ms
            </dd>
            <dt>Answer</dt>
            <dd>{lastAttempt.status ?? "none"}</dd>
          </>
        )}
        {fault !== undefined && (
          <>
            <dt>What was wrong</dt>
            <dd className="text-bad">{fault}</dd>
          </>
        )}
      </dl>
      {event && (
        <>
          <h3 className="label mt-5 mb-1.5">The message</h3>
          <Code text={messageOf(event)} label="Copy the message" />
        </>
      )}
    </Panel>
  );
}

/** The event of a delivery; undefined if it is not found or may not be read. It is among the events of its object. */
function useEvent(delivery: WebhookDelivery | undefined): Entry<"events.listEvents"> | undefined {
  const isAllowed = useCan()("events.*.read_event");
  const { objectId = "", type } = delivery ?? {};
  const input = { objectId, ...(type && { types: [type] }), order: "desc", limit: 100 };
  const { data } = useQuery({
    ...read("events.listEvents", input as Input<"events.listEvents">),
    enabled: isAllowed && delivery !== undefined,
  });
  return data?.find(({ id }) => id === delivery?.eventId);
}

/** The event as the endpoint gets it. */
function messageOf({ id, type, version, createdAt, data }: Entry<"events.listEvents">): string {
  return JSON.stringify({ id, type, version, timestamp: new Date(createdAt).toISOString(), data }, null, 2);
}
