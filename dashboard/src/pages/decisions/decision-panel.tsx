import type { ReactNode } from "react";
import { exactNumber } from "../../api/format.ts";
import { Panel } from "../../ui/overlays/panel.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { Time } from "../../ui/text/time.tsx";
import { ResourceLink } from "../resource-link.tsx";
import { type Decision, leftOutWords, reasonOf } from "./decision.ts";

/** Everything that the log has of a decision. */
export function DecisionPanel({ of: decision, onFilter }: { of: Decision; onFilter: (about: string) => void }) {
  const { at, code, requestId, latencyUs, keyId, apiId, identityId, namespaceId, identifier, tags, network } = decision;
  const reason = reasonOf(decision);
  const leftOut = leftOutWords(decision);
  const resources = [keyId, apiId, identityId, namespaceId].filter((id) => id !== undefined);
  return (
    <Panel title={code}>
      <dl className="grid grid-cols-[6rem_minmax(0,1fr)] gap-y-2.5 [&>dt]:text-quiet">
        <Row name="Time">
          <Time at={at} />
        </Row>
        <Row name="Request">
          <Id id={requestId} />
        </Row>
        {reason !== "" && <Row name="Reason">{reason}</Row>}
        {leftOut && <Row name="Left out">{leftOut}</Row>}
        {resources.map((id) => (
          <Row key={id} name={nameOf(id)}>
            <span className="flex flex-wrap items-center justify-between gap-2">
              <ResourceLink id={id} apiId={apiId} />
              <button type="button" className="text-xs text-quiet hover:underline" onClick={() => onFilter(id)}>
                All its decisions
              </button>
            </span>
          </Row>
        ))}
        {identifier !== undefined && (
          <Row name="Identifier">
            <code className="font-mono text-xs break-all">{identifier}</code>
          </Row>
        )}
        {tags && tags.length > 0 && <Row name="Tags">{tags.join(" · ")}</Row>}
        {network !== undefined && (
          <Row name="Network">
            <code className="font-mono text-xs">{network}</code>
          </Row>
        )}
        <Row name="Took">{exactNumber(latencyUs)} µs</Row>
      </dl>
      <h3 className="label mt-5 mb-1.5">As recorded</h3>
      <Code text={JSON.stringify(decision, null, 2)} label="Copy the decision" />
    </Panel>
  );
}

function Row({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

function nameOf(id: string): string {
  if (id.startsWith("key_")) return "Key";
  if (id.startsWith("api_")) return "API";
  return id.startsWith("id_") ? "Identity" : "Namespace";
}
