import type { Webhook } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent, useNavigate, useParams } from "@tanstack/react-router";
import { TriangleAlert } from "lucide-react";
import { type ReactNode, Suspense, useEffect, useState } from "react";
import { isProblem, read, useCall } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { Fact, Facts, None, Page } from "../../ui/page.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Time } from "../../ui/text/time.tsx";
import { Deliveries } from "./deliveries.tsx";
import type { MadeSecret } from "./webhook-dialogs.tsx";
import { deadLetters, disabledBecause, WebhookState, webhookName } from "./webhook-state.tsx";

const load = () => loadCode(() => import("./webhook-dialogs.tsx"));
const EditWebhook = lazyRouteComponent(load, "EditWebhook");
const RotateSecret = lazyRouteComponent(load, "RotateSecret");
const MadeWebhookSecret = lazyRouteComponent(load, "MadeWebhookSecret");

/** The intervals in which deliveries that are under way are read: of an endpoint that answers, and of one that fails. */
const INTERVAL_MS = 2_000;
const FAILING_INTERVAL_MS = 15_000;
/** How long they are read after something was started: the service hands events out within a second. */
const WATCHED_MS = 10_000;

/** A webhook: its settings, its state and its deliveries. */
export function WebhookPage() {
  const { webhookId } = useParams({ from: "/shell/webhooks/$webhookId" });
  // When something was started; 0: nothing was lately.
  const [startedAt, setStartedAt] = useState(0);
  useEffect(() => {
    if (startedAt === 0) return;
    const timer = setTimeout(() => setStartedAt(0), WATCHED_MS);
    return () => clearTimeout(timer);
  }, [startedAt]);
  const isWatched = startedAt > 0;
  const needs = `webhooks.${webhookId}.read_webhook`;
  const isAllowed = useCan()(needs);
  const found = useQuery({
    ...read("webhooks.getWebhook", { webhookId }),
    enabled: isAllowed,
    refetchInterval: ({ state }) => intervalOf(state.data, isWatched),
  });
  const webhook = found.data;
  const above = (
    <Link to="/webhooks" className="hover:underline">
      Webhooks
    </Link>
  );
  if (!webhook) {
    return (
      <Page title="Webhook" above={above}>
        {!isAllowed ? (
          <p className="text-quiet">The root key lacks the permission {needs}.</p>
        ) : isProblem(found.error, "data/webhook_not_found") ? (
          <EmptyState title="This webhook does not exist">
            <p>It may have been deleted, or belongs to another workspace.</p>
          </EmptyState>
        ) : (
          <Loading of={found} lines={8} />
        )}
      </Page>
    );
  }
  const watch = () => setStartedAt(Date.now());
  return (
    <Page
      above={above}
      tabTitle={webhookName(webhook)}
      title={
        <span className="flex flex-wrap items-center gap-2.5">
          <span className="min-w-0 break-all">{webhookName(webhook)}</span>
          <WebhookState of={webhook} />
        </span>
      }
      summary={<Id id={webhookId} />}
      actions={<Actions of={webhook} onStart={watch} />}
    >
      <Trouble of={webhook} />
      <Settings of={webhook} onStart={watch} />
      <Deliveries of={webhook} interval={intervalOf(webhook, isWatched)} onStart={watch} />
    </Page>
  );
}

/** The interval in which deliveries are read; false: they change by calls only. */
function intervalOf(webhook: Webhook | undefined, isWatched: boolean): number | false {
  if (isWatched) return INTERVAL_MS;
  if (!webhook?.enabled || webhook.pending === 0) return false;
  return webhook.failingSince === undefined ? INTERVAL_MS : FAILING_INTERVAL_MS;
}

function Actions({ of: webhook, onStart }: { of: Webhook; onStart: () => void }) {
  const { webhookId, enabled } = webhook;
  const [dialog, setDialog] = useState<"edit" | "rotate" | "delete">();
  const [made, setMade] = useState<MadeSecret>();
  const navigate = useNavigate({ from: "/webhooks/$webhookId" });
  const test = useCall("webhooks.sendTest");
  const remove = useCall("webhooks.deleteWebhook");
  const setEnabled = useSetEnabled(webhook);
  const needs = `webhooks.${webhookId}.update_webhook`;
  const needsToUpdate = [needs, "events.*.read_event"];
  const sendTest = () =>
    test.mutate(
      { webhookId },
      {
        onSuccess: ({ data: { eventId } }) => {
          onStart();
          void navigate({ search: { open: eventId } });
        },
        onError: toastError,
      },
    );
  return (
    <>
      <Button
        needs={needs}
        offBecause={!enabled && "The webhook is disabled: enable it first"}
        onPress={sendTest}
        isPending={test.isPending}
      >
        Send a test
      </Button>
      <Button needs={needsToUpdate} onPress={() => setDialog("edit")}>
        Edit…
      </Button>
      <MoreMenu
        label="More about this webhook"
        entries={[
          { label: "Rotate the secret…", needs, onAction: () => setDialog("rotate") },
          {
            label: enabled ? "Disable" : "Enable",
            needs: needsToUpdate,
            onAction: () => setEnabled(!enabled),
          },
          "line",
          {
            label: "Delete…",
            isDanger: true,
            needs: `webhooks.${webhookId}.delete_webhook`,
            onAction: () => setDialog("delete"),
          },
        ]}
      />
      <Suspense>
        {dialog === "edit" && <EditWebhook of={webhook} onClose={() => setDialog(undefined)} />}
        {dialog === "rotate" && <RotateSecret of={webhook} onClose={() => setDialog(undefined)} onMade={setMade} />}
        {made && <MadeWebhookSecret of={made} onClose={() => setMade(undefined)} />}
      </Suspense>
      <ConfirmDialog
        title="Delete the webhook"
        action="Delete webhook"
        typed={webhookName(webhook)}
        isOpen={dialog === "delete"}
        onClose={() => setDialog(undefined)}
        onConfirm={async () => {
          await navigate({ to: "/webhooks" });
          await remove.mutateAsync({ webhookId });
          toast({ text: `Deleted the webhook ${webhookName(webhook)}.` });
        }}
      >
        <strong className="font-medium">{webhookName(webhook)}</strong> gets no further events, and its secret is
        erased. This cannot be undone: to stop it for a while, disable it.
      </ConfirmDialog>
    </>
  );
}

function useSetEnabled({ webhookId, ...webhook }: Webhook): (enabled: boolean) => void {
  const update = useCall("webhooks.updateWebhook");
  return (enabled) =>
    update.mutate(
      { webhookId, enabled },
      {
        onSuccess: () =>
          toast({
            text: `${enabled ? "Enabled" : "Disabled"} the webhook ${webhookName(webhook)}.`,
            undo: () => update.mutateAsync({ webhookId, enabled: !enabled }),
          }),
        onError: toastError,
      },
    );
}

/** Why the webhook is disabled or fails, and what ends it. */
function Trouble({ of: webhook }: { of: Webhook }) {
  const { webhookId, enabled, disabled, failingSince, pending } = webhook;
  const setEnabled = useSetEnabled(webhook);
  if (enabled && failingSince !== undefined) {
    return (
      <Notice title={<>Its attempts fail since {<Time at={failingSince} />}</>}>
        The service tries for three days. If none succeeds for two days and a delivery is given up, it disables the
        webhook. The last attempt of a delivery says what was wrong.
      </Notice>
    );
  }
  if (enabled || !disabled) return null;
  return (
    <Notice
      title={
        <>
          Disabled since <Time at={disabled.at} />
        </>
      }
      action={
        <Button
          kind="primary"
          needs={[`webhooks.${webhookId}.update_webhook`, "events.*.read_event"]}
          onPress={() => setEnabled(true)}
        >
          Enable
        </Button>
      }
    >
      {disabledBecause[disabled.reason]} {disabled.reason !== "requested" && "Mend the endpoint, then enable it. "}
      {pending > 0
        ? `${counted(pending, "delivery", "deliveries")} that ${pending === 1 ? "waits" : "wait"} then continue at once. `
        : ""}
      Events that happen meanwhile are not sent later; they are at{" "}
      <Link to="/events" className="link">
        Events
      </Link>
      .
    </Notice>
  );
}

function Notice({ title, action, children }: { title: ReactNode; action?: ReactNode; children: ReactNode }) {
  return (
    <div
      role="note"
      className="mb-4 flex flex-wrap items-start justify-between gap-3 rounded-md border border-warn/40 bg-warn-soft p-3"
    >
      <div className="min-w-0 max-w-prose">
        <p className="flex items-center gap-2 font-medium text-warn">
          <TriangleAlert aria-hidden className="size-4 shrink-0" />
          <span>{title}</span>
        </p>
        <p className="mt-1">{children}</p>
      </div>
      {action}
    </div>
  );
}

function Settings({ of: webhook, onStart }: { of: Webhook; onStart: () => void }) {
  const { endpoint, eventTypes, apiIds, pending, dead, lastDeliveredAt, previousSecretExpires } = webhook;
  const mayReadApis = useCan()("apis.*.read_api");
  const { data: apis = [] } = useQuery({
    ...read("apis.listApis", { limit: 100 }),
    enabled: mayReadApis && apiIds !== undefined,
  });
  return (
    <div className="mb-6">
      <Facts>
        <Fact name="Endpoint">
          <Id id={endpoint} />
        </Fact>
        <Fact name="Events">
          {eventTypes === undefined ? (
            "all types"
          ) : (
            <span className="flex flex-wrap gap-x-3">
              {eventTypes.map((type) => (
                <code key={type} className="font-mono text-xs">
                  {type}
                </code>
              ))}
            </span>
          )}
        </Fact>
        {apiIds && (
          <Fact name="Only of the APIs">
            <span className="flex flex-wrap gap-x-3">
              {apiIds.map((apiId) => (
                <Link key={apiId} to="/apis/$apiId" params={{ apiId }} className="link">
                  {apis.find((api) => api.apiId === apiId)?.name ?? apiId}
                </Link>
              ))}
            </span>
          </Fact>
        )}
        <Fact name="Last delivery">
          {lastDeliveredAt === undefined ? <None text="none yet" /> : <Time at={lastDeliveredAt} />}
        </Fact>
        <Fact name="Waiting">{exactNumber(pending)}</Fact>
        <Fact name="Dead letters">
          <span className="flex flex-wrap items-center justify-between gap-2">
            {deadLetters(dead)}
            {dead > 0 && <RedeliverAll of={webhook} onStart={onStart} />}
          </span>
        </Fact>
        {previousSecretExpires !== undefined && (
          <Fact name="The old secret signs until">
            <Time at={previousSecretExpires} />
          </Fact>
        )}
      </Facts>
    </div>
  );
}

/** As many calls send dead letters again, 1,000 each. A further press continues. */
const CALLS_MAX = 50;

function RedeliverAll({ of: { webhookId, enabled, dead }, onStart }: { of: Webhook; onStart: () => void }) {
  const redeliver = useCall("webhooks.redeliver");
  const [isPending, setPending] = useState(false);
  const start = async () => {
    setPending(true);
    try {
      let started = 0;
      for (let calls = 0; calls < CALLS_MAX; calls++) {
        const { data } = await redeliver.mutateAsync({ webhookId });
        started += data.count;
        if (!data.hasMore) break;
      }
      onStart();
      toast({ text: `${counted(started, "dead letter")} ${started === 1 ? "is" : "are"} sent again.` });
    } catch (error) {
      toastError(error);
    } finally {
      setPending(false);
    }
  };
  return (
    <Button
      needs={`webhooks.${webhookId}.update_webhook`}
      offBecause={!enabled && "The webhook is disabled: enable it first"}
      onPress={() => void start()}
      isPending={isPending}
    >
      {dead === 1 ? "Send it again" : "Send all again"}
    </Button>
  );
}
