import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, CircleCheck } from "lucide-react";
import type { ReactNode } from "react";
import { read } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import type { WebhookSearch } from "../../layout/searches.ts";
import { Loading } from "../../ui/loading.tsx";
import { StatusBadge, type Tone } from "../../ui/status-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { keyName } from "../keys/key-state.tsx";

/** As many keys of a kind the service counts. */
const COUNTED_MAX = 1_000;
const components = {
  database: "The database",
  storage: "The disk",
  claim: "The claim",
  redis: "Redis",
  analytics: "The analytics store",
};

/** What needs attention, each with links to what ends it. */
export function Findings() {
  const can = useCan();
  const isAllowed = ["apis.*.read_key", "rootKeys.*.read_root_key", "webhooks.*.read_webhook"].some(can);
  const findings = useQuery({ ...read("system.getFindings", {}), enabled: isAllowed, staleTime: 60_000 });
  const status = useQuery({ ...read("system.getStatus", {}), enabled: can("system.*.read_status"), staleTime: 30_000 });
  if (!isAllowed && !can("system.*.read_status")) {
    return <p className="text-quiet">The root key lacks the permission apis.*.read_key.</p>;
  }
  if (findings.error || (isAllowed && !findings.data)) return <Loading of={findings} lines={4} />;
  const { keysExpiring, creditsLow, keysLeaked, rootKeysUnused = [], rootKeysUnrestricted = [] } = findings.data ?? {};
  const { rootKeysLeaked = [] } = findings.data ?? {};
  const { webhooksDisabled = [], webhooksDead = [] } = findings.data ?? {};
  const degraded = (status.data?.components ?? []).filter(({ status }) => status === "degraded");
  const lookupsRefused = status.data?.service?.recent.lookupsRefused ?? 0;
  // One administrator is needed.
  const tooPowerful = rootKeysUnrestricted.length > 1 ? rootKeysUnrestricted : [];
  const isCalm =
    degraded.length === 0 &&
    lookupsRefused === 0 &&
    !keysExpiring?.count &&
    !creditsLow?.count &&
    !keysLeaked?.count &&
    !rootKeysLeaked.length &&
    !webhooksDisabled.length &&
    !webhooksDead.length &&
    !rootKeysUnused.length &&
    !tooPowerful.length;
  if (isCalm) {
    return (
      <p className="flex items-center gap-2">
        <CircleCheck aria-hidden className="size-4 text-good" />
        Nothing needs attention.
      </p>
    );
  }
  return (
    <ul className="divide-y divide-line border-y border-line">
      {degraded.map(({ name, detail }) => (
        <Finding key={name} tone="bad" badge="Degraded" title={`${components[name]} does not work`}>
          {detail && <p className="text-quiet">{detail}</p>}
        </Finding>
      ))}
      {!!keysLeaked?.count && (
        <Finding
          tone="bad"
          badge="Leaked"
          title={`${number(keysLeaked.count, "key")} reported as leaked, and still valid`}
        >
          <List
            entries={keysLeaked.keys.map((key) => ({
              id: key.keyId,
              label: <KeyLink of={key} />,
              note: (
                <>
                  reported <Time at={key.leakedAt} relative />
                </>
              ),
            }))}
            of={keysLeaked.count}
          />
        </Finding>
      )}
      {rootKeysLeaked.length > 0 && (
        <Finding
          tone="bad"
          badge="Leaked"
          title={`${counted(rootKeysLeaked.length, "root key")} reported as leaked, and still valid`}
        >
          <RootKeys of={rootKeysLeaked} />
        </Finding>
      )}
      {webhooksDisabled.length > 0 && (
        <Finding
          tone="bad"
          badge="Webhooks"
          title={`${counted(webhooksDisabled.length, "webhook")} disabled, because the endpoint failed`}
        >
          <List
            entries={webhooksDisabled.map((webhook) => ({
              id: webhook.webhookId,
              label: <WebhookLink of={webhook} />,
              note: <Time at={webhook.disabledAt} relative />,
            }))}
            of={webhooksDisabled.length}
          />
        </Finding>
      )}
      {webhooksDead.length > 0 && (
        <Finding
          tone="warn"
          badge="Webhooks"
          title={`${counted(webhooksDead.length, "webhook")} with events that were given up`}
        >
          <List
            entries={webhooksDead.map((webhook) => ({
              id: webhook.webhookId,
              label: <WebhookLink of={webhook} search={{ status: "dead" }} />,
              note: number(webhook.dead, "dead letter"),
            }))}
            of={webhooksDead.length}
          />
        </Finding>
      )}
      {lookupsRefused > 0 && (
        <Finding
          tone="warn"
          badge="Refused"
          title={`${counted(lookupsRefused, "look-up")} of unknown keys refused in the last 10 minutes`}
        >
          <p className="text-quiet">
            A caller tries keys that do not exist, beyond the look-ups that it has per second. Known keys are verified
            as before. Recent decisions show the attempts; LATCHKEY_LOOKUPS_PER_SECOND is the budget.
          </p>
        </Finding>
      )}
      {!!keysExpiring?.count && (
        <Finding tone="warn" badge="Expiring" title={`${number(keysExpiring.count, "key")} within 14 days`}>
          <List
            entries={keysExpiring.keys.map((key) => ({
              id: key.keyId,
              label: <KeyLink of={key} />,
              note: <Time at={key.expires} relative />,
            }))}
            of={keysExpiring.count}
          />
        </Finding>
      )}
      {!!creditsLow?.count && (
        <Finding tone="warn" badge="Credits" title={`${number(creditsLow.count, "key")} almost without credits`}>
          <List
            entries={creditsLow.keys.map((key) => ({
              id: key.keyId,
              label: <KeyLink of={key} />,
              note: `${exactNumber(key.remaining)}${key.refillAmount === undefined ? "" : ` of ${exactNumber(key.refillAmount)}`} left`,
            }))}
            of={creditsLow.count}
          />
        </Finding>
      )}
      {rootKeysUnused.length > 0 && (
        <Finding tone="warn" badge="Unused" title={`${counted(rootKeysUnused.length, "root key")} unused for 90 days`}>
          <RootKeys of={rootKeysUnused} />
        </Finding>
      )}
      {tooPowerful.length > 0 && (
        <Finding tone="warn" badge="Powerful" title={`${counted(tooPowerful.length, "root key")} may do everything`}>
          <RootKeys of={tooPowerful} />
        </Finding>
      )}
    </ul>
  );
}

function Finding({ tone, badge, title, children }: { tone: Tone; badge: string; title: string; children: ReactNode }) {
  return (
    <li>
      <details className="group">
        <summary className="flex cursor-pointer list-none items-center gap-2.5 py-2 hover:bg-hover">
          <StatusBadge tone={tone}>{badge}</StatusBadge>
          <span className="min-w-0 flex-1">{title}</span>
          <ChevronRight
            aria-hidden
            className="size-4 shrink-0 text-quiet transition-transform duration-120 group-open:rotate-90"
          />
        </summary>
        <div className="pb-3 pl-2">{children}</div>
      </details>
    </li>
  );
}

function List({
  entries,
  of,
}: {
  entries: readonly { readonly id: string; readonly label: ReactNode; readonly note: ReactNode }[];
  of: number;
}) {
  return (
    <ul className="space-y-1">
      {entries.map(({ id, label, note }) => (
        <li key={id} className="flex items-baseline justify-between gap-4">
          <span className="min-w-0 truncate">{label}</span>
          <span className="shrink-0 text-xs text-quiet tabular-nums">{note}</span>
        </li>
      ))}
      {of > entries.length && <li className="text-xs text-quiet">{`and ${number(of - entries.length, "other")}`}</li>}
    </ul>
  );
}

function KeyLink({ of }: { of: { keyId: string; apiId: string; name?: string } }) {
  const { apiId, keyId } = of;
  return (
    <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} className="hover:underline">
      {keyName(of)}
    </Link>
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

function RootKeys({
  of,
}: {
  of: readonly { rootKeyId: string; name: string; createdAt: number; lastUsedAt?: number }[];
}) {
  return (
    <List
      of={of.length}
      entries={of.map(({ rootKeyId, name, lastUsedAt }) => ({
        id: rootKeyId,
        label: (
          <Link to="/root-keys" search={{ q: rootKeyId }} className="hover:underline">
            {name || rootKeyId}
          </Link>
        ),
        note:
          lastUsedAt === undefined ? (
            "never used"
          ) : (
            <>
              used <Time at={lastUsedAt} relative />
            </>
          ),
      }))}
    />
  );
}

function number(count: number, one: string): string {
  return count >= COUNTED_MAX ? `${exactNumber(COUNTED_MAX)} ${one}s or more` : counted(count, one);
}
