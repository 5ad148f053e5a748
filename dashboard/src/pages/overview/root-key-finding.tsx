import { Link } from "@tanstack/react-router";
import { counted } from "../../api/format.ts";
import type { Tone } from "../../ui/text/status-badge.tsx";
import { Time } from "../../ui/text/time.tsx";
import { Finding, FindingList } from "./finding.tsx";

interface FoundRootKey {
  readonly rootKeyId: string;
  readonly name: string;
  readonly lastUsedAt?: number;
}

/** Root keys with a property, such as `unused for 90 days`. */
export function RootKeyFinding({
  of,
  tone,
  badge,
  what,
}: {
  of: readonly FoundRootKey[];
  tone: Tone;
  badge: string;
  what: string;
}) {
  return (
    <Finding tone={tone} badge={badge} title={`${counted(of.length, "root key")} ${what}`}>
      <FindingList
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
    </Finding>
  );
}
