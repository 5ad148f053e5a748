import { Link } from "@tanstack/react-router";
import type { Data } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { Time } from "../../ui/text/time.tsx";
import { keyName } from "../keys/key-state.tsx";
import { countedUpTo, Finding, FindingList } from "./finding.tsx";

type Found<Name extends keyof Data<"system.getFindings">> = NonNullable<Data<"system.getFindings">[Name]>;

export function LeakedKeys({ of: keysLeaked }: { of: Found<"keysLeaked"> }) {
  return (
    <Finding
      tone="bad"
      badge="Leaked"
      title={`${countedUpTo(keysLeaked.count, "key")} reported as leaked, and still valid`}
    >
      <FindingList
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
  );
}

export function ExpiringKeys({ of: keysExpiring }: { of: Found<"keysExpiring"> }) {
  return (
    <Finding tone="warn" badge="Expiring" title={`${countedUpTo(keysExpiring.count, "key")} within 14 days`}>
      <FindingList
        entries={keysExpiring.keys.map((key) => ({
          id: key.keyId,
          label: <KeyLink of={key} />,
          note: <Time at={key.expires} relative />,
        }))}
        of={keysExpiring.count}
      />
    </Finding>
  );
}

export function LowCredits({ of: creditsLow }: { of: Found<"creditsLow"> }) {
  return (
    <Finding tone="warn" badge="Credits" title={`${countedUpTo(creditsLow.count, "key")} almost without credits`}>
      <FindingList
        entries={creditsLow.keys.map((key) => ({
          id: key.keyId,
          label: <KeyLink of={key} />,
          note: `${exactNumber(key.remaining)}${key.refillAmount === undefined ? "" : ` of ${exactNumber(key.refillAmount)}`} left`,
        }))}
        of={creditsLow.count}
      />
    </Finding>
  );
}

const rules = { expiry: "its expiry", limitsRequired: "no limit", prefixFixed: "its prefix" };

export function KeysAgainstPolicy({ of }: { of: Found<"keysAgainstPolicy">[number] }) {
  const { apiId, name, count, keys } = of;
  return (
    <Finding tone="warn" badge="Policy" title={`${countedUpTo(count, "key")} of ${name} against its policy`}>
      <FindingList
        entries={keys.map((key) => ({
          id: key.keyId,
          label: <KeyLink of={key} />,
          note: key.against.map((rule) => rules[rule]).join(", "),
        }))}
        of={count}
      />
      <Link to="/apis/$apiId/settings" params={{ apiId }} className="text-xs hover:underline">
        The policy of the API
      </Link>
    </Finding>
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
