import type { RootKey } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { read } from "../../api/client.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Panel } from "../../ui/overlays/panel.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { RootKeyActions } from "./root-key-actions.tsx";
import type { Made } from "./root-key-dialogs.tsx";
import { RootKeyFacts } from "./root-key-facts.tsx";

/** A root key beside the table. */
export function RootKeyPanel({
  rootKeyId,
  known,
  onMade,
}: {
  rootKeyId: string;
  known: RootKey | undefined;
  onMade: (made: Made) => void;
}) {
  // A link can lead to a root key that the list has not loaded.
  const found = useQuery({ ...read("rootKeys.listRootKeys", { search: rootKeyId }), enabled: known === undefined });
  const rootKey = known ?? found.data?.find((other) => other.rootKeyId === rootKeyId);
  if (!rootKey) {
    return (
      <Panel title="Root key">
        {found.data ? (
          <p className="text-quiet">There is no root key with the id {rootKeyId}.</p>
        ) : (
          <Loading of={found} lines={6} />
        )}
      </Panel>
    );
  }
  return (
    <Panel title={rootKey.name || rootKeyId} actions={<RootKeyActions of={rootKey} onMade={onMade} />}>
      <RootKeyFacts of={rootKey} />
      <div className="mt-4">
        <CopyButton kind="quiet" text={() => snippetsOf("rootKeys.listRootKeys", { search: rootKeyId }).curl}>
          Copy as curl
        </CopyButton>
      </div>
    </Panel>
  );
}
