import { useQuery } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { read } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { Loading } from "../../ui/text/loading.tsx";
import { Finding } from "./finding.tsx";
import { ExpiringKeys, KeysAgainstPolicy, LeakedKeys, LowCredits } from "./key-findings.tsx";
import { RootKeyFinding } from "./root-key-finding.tsx";
import { DeadLetters, DisabledWebhooks } from "./webhook-findings.tsx";

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
  const { rootKeysLeaked = [], keysAgainstPolicy = [] } = findings.data ?? {};
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
    !keysAgainstPolicy.length &&
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
      {!!keysLeaked?.count && <LeakedKeys of={keysLeaked} />}
      {rootKeysLeaked.length > 0 && (
        <RootKeyFinding of={rootKeysLeaked} tone="bad" badge="Leaked" what="reported as leaked, and still valid" />
      )}
      {webhooksDisabled.length > 0 && <DisabledWebhooks of={webhooksDisabled} />}
      {webhooksDead.length > 0 && <DeadLetters of={webhooksDead} />}
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
      {!!keysExpiring?.count && <ExpiringKeys of={keysExpiring} />}
      {!!creditsLow?.count && <LowCredits of={creditsLow} />}
      {keysAgainstPolicy.map((one) => (
        <KeysAgainstPolicy key={one.apiId} of={one} />
      ))}
      {rootKeysUnused.length > 0 && (
        <RootKeyFinding of={rootKeysUnused} tone="warn" badge="Unused" what="unused for 90 days" />
      )}
      {tooPowerful.length > 0 && (
        <RootKeyFinding of={tooPowerful} tone="warn" badge="Powerful" what="may do everything" />
      )}
    </ul>
  );
}
