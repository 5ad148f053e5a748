import { Link } from "@tanstack/react-router";
import type { Data } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import type { WebhookSearch } from "../../layout/searches.ts";
import { Time } from "../../ui/text/time.tsx";
import { countedUpTo, Finding, FindingList } from "./finding.tsx";

type Found<Name extends keyof Data<"system.getFindings">> = NonNullable<Data<"system.getFindings">[Name]>;

export function DisabledWebhooks({ of: webhooksDisabled }: { of: Found<"webhooksDisabled"> }) {
  return (
    <Finding
      tone="bad"
      badge="Webhooks"
      title={`${counted(webhooksDisabled.length, "webhook")} disabled, because the endpoint failed`}
    >
      <FindingList
        entries={webhooksDisabled.map((webhook) => ({
          id: webhook.webhookId,
          label: <WebhookLink of={webhook} />,
          note: <Time at={webhook.disabledAt} relative />,
        }))}
        of={webhooksDisabled.length}
      />
    </Finding>
  );
}

export function DeadLetters({ of: webhooksDead }: { of: Found<"webhooksDead"> }) {
  return (
    <Finding
      tone="warn"
      badge="Webhooks"
      title={`${counted(webhooksDead.length, "webhook")} with events that were given up`}
    >
      <FindingList
        entries={webhooksDead.map((webhook) => ({
          id: webhook.webhookId,
          label: <WebhookLink of={webhook} search={{ status: "dead" }} />,
          note: countedUpTo(webhook.dead, "dead letter"),
        }))}
        of={webhooksDead.length}
      />
    </Finding>
  );
}

function WebhookLink({
  of,
  search = {},
}: {
  of: { webhookId: string; name?: string; endpoint: string };
  search?: WebhookSearch;
}) {
  return (
    <Link to="/webhooks/$webhookId" params={{ webhookId: of.webhookId }} search={search} className="hover:underline">
      {of.name ?? of.endpoint}
    </Link>
  );
}
