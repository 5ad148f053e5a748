import type { Key } from "@latchkey/sdk";
import type { ReactNode } from "react";
import { Page, Section } from "../../ui/page.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { StatusBadge } from "../../ui/text/status-badge.tsx";
import { Time } from "../../ui/text/time.tsx";
import { ActivitySection } from "../audit/activity-section.tsx";
import { LastRefusals } from "../decisions/last-refusals.tsx";
import { keyName, OwnerLink } from "./key-state.tsx";
import { RestoreButton } from "./restore-button.tsx";

/** A deleted key: what became of it, and how to bring it back. */
export function DeletedKey({ of: key, deletedAt, above }: { of: Key; deletedAt: number; above: ReactNode }) {
  const { keyId, start, identity } = key;
  const name = keyName(key);
  return (
    <Page
      above={above}
      tabTitle={name}
      title={
        <span className="flex flex-wrap items-center gap-2.5">
          {name}
          <StatusBadge tone="bad">Deleted</StatusBadge>
        </span>
      }
      summary={
        <span className="flex flex-wrap items-center gap-x-4 gap-y-1">
          {identity && <OwnerLink {...identity} />}
          {start !== "" && <code className="font-mono text-xs">{start}…</code>}
          <Id id={keyId} />
        </span>
      }
      actions={<RestoreButton of={key} kind="primary" />}
    >
      <div className="[&>section:first-child]:border-t-0">
        <Section title="Deleted" id="deleted">
          <p className="max-w-prose">
            This key was deleted <Time at={deletedAt} relative />. Requests with it are rejected. Restored, it has its
            key string, credits, limits, roles and owner again, except what was deleted meanwhile. The service erases
            deleted keys after 90 days, or what LATCHKEY_RETENTION_DELETED says.
          </p>
        </Section>
        <LastRefusals about={keyId} id="refusals" />
        <ActivitySection target={keyId} id="activity" />
      </div>
    </Page>
  );
}
