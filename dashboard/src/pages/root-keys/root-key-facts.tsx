import type { RootKey } from "@latchkey/sdk";
import { Id } from "../../ui/text/copy-button.tsx";
import { Time } from "../../ui/text/time.tsx";
import { KeyState } from "../keys/key-state.tsx";

/** Everything about a root key. */
export function RootKeyFacts({ of: rootKey }: { of: RootKey }) {
  const { rootKeyId, start, permissions, source, createdAt, lastUsedAt, expires, leakedAt, createdBy } = rootKey;
  return (
    <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-y-2.5 [&>dt]:text-quiet">
      <dt>State</dt>
      <dd>
        <KeyState of={rootKey} />
      </dd>
      <dt>Id</dt>
      <dd>
        <Id id={rootKeyId} />
      </dd>
      <dt>Root key</dt>
      <dd>{source === "environment" ? "of the configuration" : <code className="font-mono text-xs">{start}…</code>}</dd>
      <dt>Last used</dt>
      <dd>{lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} relative />}</dd>
      <dt>Created</dt>
      <dd>
        <Time at={createdAt} />
      </dd>
      {createdBy !== undefined && (
        <>
          <dt>Created by</dt>
          <dd>
            <Id id={createdBy} />
          </dd>
        </>
      )}
      {leakedAt !== undefined && (
        <>
          <dt>Leaked</dt>
          <dd>
            reported <Time at={leakedAt} />
          </dd>
        </>
      )}
      <dt>Expires</dt>
      <dd>{expires === undefined ? "never" : <Time at={expires} />}</dd>
      <dt>Permissions</dt>
      <dd>
        <ul className="space-y-0.5">
          {permissions.map((permission) => (
            <li key={permission} className="font-mono text-xs">
              {permission === "*" ? "* (everything)" : permission}
            </li>
          ))}
        </ul>
      </dd>
    </dl>
  );
}
