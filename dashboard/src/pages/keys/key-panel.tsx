import { useQuery } from "@tanstack/react-query";
import { Maximize2 } from "lucide-react";
import { read } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { LinkButton } from "../../ui/button.tsx";
import { LimitWords } from "../../ui/charts/limit.tsx";
import { Panel, useClosePanel } from "../../ui/overlays/panel.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Time } from "../../ui/text/time.tsx";
import { KeyActions } from "./key-actions.tsx";
import { KeyState, keyName, OwnerLink } from "./key-state.tsx";
import { RecentUse } from "./recent-use.tsx";
import { RestoreButton } from "./restore-button.tsx";

/** What matters about a key, beside the table. */
export function KeyPanel({ apiId, keyId }: { apiId: string; keyId: string }) {
  const found = useQuery(read("keys.getKey", { keyId, deleted: true }));
  const key = found.data;
  const close = useClosePanel();
  return (
    <Panel
      title={key ? keyName(key) : "Key"}
      actions={
        key && (
          <>
            <LinkButton to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} kind="primary">
              <Maximize2 aria-hidden />
              Open
            </LinkButton>
            {key.deletedAt === undefined ? <KeyActions of={key} onDeleted={close} /> : <RestoreButton of={key} />}
          </>
        )
      }
    >
      {found.error || !key ? (
        <Loading of={found} lines={8} />
      ) : (
        <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-y-2.5 [&>dt]:text-quiet">
          <dt>State</dt>
          <dd>
            <KeyState of={key} />
          </dd>
          <dt>Id</dt>
          <dd>
            <Id id={key.keyId} />
          </dd>
          <dt>Key</dt>
          <dd>
            <code className="font-mono text-xs">{key.start === "" ? "–" : `${key.start}…`}</code>
          </dd>
          <dt>Owner</dt>
          <dd>{key.identity ? <OwnerLink {...key.identity} /> : "–"}</dd>
          <dt>36 hours</dt>
          <dd className="flex">
            <RecentUse of={{ apiId, keyId }} />
          </dd>
          <dt>Last used</dt>
          <dd>{key.lastUsedAt === undefined ? "never" : <Time at={key.lastUsedAt} relative />}</dd>
          <dt>Created</dt>
          <dd>
            <Time at={key.createdAt} />
          </dd>
          {key.deletedAt !== undefined && (
            <>
              <dt>Deleted</dt>
              <dd>
                <Time at={key.deletedAt} />
              </dd>
            </>
          )}
          <dt>Expires</dt>
          <dd>{key.expires === undefined ? "never" : <Time at={key.expires} />}</dd>
          <dt>Credits</dt>
          <dd className="tabular-nums">{key.credits ? `${exactNumber(key.credits.remaining)} remain` : "unlimited"}</dd>
          <dt>Limits</dt>
          <dd>
            {key.ratelimits?.length
              ? key.ratelimits.map(({ id, name, ...limit }) => (
                  <div key={id}>
                    {name}: <LimitWords of={limit} />
                  </div>
                ))
              : "none of its own"}
          </dd>
          <dt>Roles</dt>
          <dd>{key.roles?.join(", ") || "none"}</dd>
          <dt>Permissions</dt>
          <dd>{key.permissions?.length ? counted(key.permissions.length, "permission") : "none"}</dd>
        </dl>
      )}
    </Panel>
  );
}
