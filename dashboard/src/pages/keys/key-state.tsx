import type { Key } from "@latchkey/sdk";
import { Link } from "@tanstack/react-router";
import { Ban, CircleCheck, Clock } from "lucide-react";
import { DAY, relativeTime } from "../../api/format.ts";
import { StatusBadge } from "../../ui/text/status-badge.tsx";

const SOON = 14 * DAY;

/** The state of a key as a badge. */
export function KeyState({
  of: { enabled, expires, leakedAt, credits, deletedAt },
}: {
  of: Pick<Key, "enabled" | "expires" | "leakedAt" | "credits" | "deletedAt">;
}) {
  if (deletedAt !== undefined) return <StatusBadge tone="bad">Deleted</StatusBadge>;
  const now = Date.now();
  if (!enabled) {
    return (
      <StatusBadge tone="neutral" icon={Ban}>
        Disabled
      </StatusBadge>
    );
  }
  if (expires !== undefined && expires <= now) return <StatusBadge tone="bad">Expired</StatusBadge>;
  if (leakedAt !== undefined) return <StatusBadge tone="bad">Leaked</StatusBadge>;
  if (credits?.remaining === 0) return <StatusBadge tone="bad">Exhausted</StatusBadge>;
  if (expires !== undefined && expires - now < SOON) {
    return (
      <StatusBadge tone="warn" icon={Clock}>
        Expires {relativeTime(expires, now)}
      </StatusBadge>
    );
  }
  return (
    <StatusBadge tone="good" icon={CircleCheck}>
      Active
    </StatusBadge>
  );
}

/** What a key is called: its name, or its id. */
export function keyName({ name, keyId }: Pick<Key, "name" | "keyId">): string {
  return name ?? keyId;
}

/** The owner of a key, by its id or external id: a link to its page. */
export function OwnerLink({ externalId, id = externalId }: { externalId: string; id?: string }) {
  return (
    <Link to="/identities/$identityId" params={{ identityId: id }} className="hover:underline">
      <bdi>{externalId}</bdi>
    </Link>
  );
}
