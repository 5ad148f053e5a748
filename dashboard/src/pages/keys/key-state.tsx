import type { Key } from "@latchkey/sdk";
import { Ban, CircleCheck, Clock } from "lucide-react";
import { DAY, relativeTime } from "../../api/format.ts";
import { StatusBadge } from "../../ui/status-badge.tsx";

const SOON = 14 * DAY;

/** The state of a key as a badge. */
export function KeyState({
  of: { enabled, expires, leakedAt },
}: {
  of: Pick<Key, "enabled" | "expires" | "leakedAt">;
}) {
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
