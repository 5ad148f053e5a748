import type { Webhook } from "@latchkey/sdk";
import { Link, lazyRouteComponent, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { Suspense, useState } from "react";
import { loadCode } from "../../api/connection.ts";
import { counted } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { None, Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { Listing } from "../../ui/tables/listing.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Count } from "../../ui/text/number.tsx";
import { Time } from "../../ui/text/time.tsx";
import type { MadeSecret } from "./webhook-dialogs.tsx";
import { deadLetters, WebhookState, webhookName } from "./webhook-state.tsx";

const load = () => loadCode(() => import("./webhook-dialogs.tsx"));
const CreateWebhook = lazyRouteComponent(load, "CreateWebhook");
const MadeWebhookSecret = lazyRouteComponent(load, "MadeWebhookSecret");

/** The endpoints to which events of the workspace are sent. */
export function WebhooksPage() {
  const navigate = useNavigate();
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<MadeSecret & { webhookId: string }>();
  const needs = "webhooks.some.read_webhook";
  const list = useRows("webhooks.listWebhooks", { limit: 100 }, useCan()(needs));
  const create = (
    <Button
      kind="primary"
      needs={["webhooks.*.create_webhook", "events.*.read_event"]}
      onPress={() => setCreating(true)}
    >
      <Plus aria-hidden />
      Create webhook
    </Button>
  );
  const open = (webhookId: string) => void navigate({ to: "/webhooks/$webhookId", params: { webhookId } });
  return (
    <Page
      title="Webhooks"
      summary="A webhook is an address of yours to which events are sent, signed, until it has accepted them."
      actions={create}
    >
      <Listing
        of={list}
        needs={needs}
        label="Webhooks"
        columns={columns}
        rowId={({ webhookId }) => webhookId}
        rowLabel={webhookName}
        onOpen={({ webhookId }) => open(webhookId)}
        noMatch={undefined}
        empty={
          <EmptyState title="No webhooks yet" action={create}>
            <p>
              Create one with the address of an endpoint that takes POST requests. Its secret is shown once: the
              endpoint verifies the messages with it. Programs that rather ask for events call{" "}
              <Link to="/events" className="link">
                events.listEvents
              </Link>
              .
            </p>
          </EmptyState>
        }
      />
      <Suspense>
        {isCreating && (
          <CreateWebhook
            onClose={() => setCreating(false)}
            onMade={(webhookId, secret) => setMade({ webhookId, ...secret })}
          />
        )}
        {made && (
          <MadeWebhookSecret
            of={made}
            onClose={() => {
              setMade(undefined);
              open(made.webhookId);
            }}
          />
        )}
      </Suspense>
    </Page>
  );
}

const columns: readonly Column<Webhook>[] = [
  {
    id: "name",
    header: "Webhook",
    sort: ({ name, endpoint }) => name ?? endpoint,
    width: "minmax(12rem, 2fr)",
    card: "title",
    cell: (webhook) => (
      <span className="flex min-w-0 items-baseline gap-2" title={webhook.endpoint}>
        <span className="shrink-0 truncate font-medium">{webhookName(webhook)}</span>
        {webhook.name !== undefined && (
          <span className="truncate text-xs font-normal text-quiet">{webhookName({ endpoint: webhook.endpoint })}</span>
        )}
      </span>
    ),
  },
  { id: "state", header: "State", width: "9rem", cell: (webhook) => <WebhookState of={webhook} /> },
  {
    id: "types",
    header: "Events",
    width: "minmax(7rem, 1fr)",
    from: "md",
    cell: ({ eventTypes, apiIds }) => (
      <span title={eventTypes?.join("\n")}>
        {eventTypes === undefined
          ? "all types"
          : eventTypes.length === 1
            ? eventTypes[0]
            : counted(eventTypes.length, "type")}
        {apiIds && <span className="text-quiet"> of {counted(apiIds.length, "API")}</span>}
      </span>
    ),
  },
  {
    id: "delivered",
    header: "Last delivery",
    width: "8rem",
    cell: ({ lastDeliveredAt }) =>
      lastDeliveredAt === undefined ? <None text="none yet" /> : <Time at={lastDeliveredAt} relative />,
  },
  {
    id: "pending",
    header: "Waiting",
    sort: ({ pending }) => pending,
    width: "5rem",
    align: "right",
    from: "md",
    card: "none",
    cell: ({ pending }) => <Count value={pending} />,
  },
  {
    id: "dead",
    header: "Dead letters",
    sort: ({ dead }) => dead,
    width: "7rem",
    align: "right",
    cell: ({ dead }) => (dead > 0 ? <span className="font-medium text-bad">{deadLetters(dead)}</span> : "0"),
  },
];
