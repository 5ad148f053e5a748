import type { Secret } from "@latchkey/sdk";
import { useMemo, useState } from "react";
import { useCall } from "../../api/client.ts";
import { localDay } from "../../api/format.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { CreatedKey } from "./created-key.tsx";
import { type Draft, emptyDraft, inputOf } from "./key-draft.ts";
import { AccessFields, CommonFields, LimitFields, OtherFields } from "./key-fields.tsx";
import { KeyPresets } from "./key-presets.tsx";

/** Creates a key, then shows its secret once. */
export function CreateKey({
  apiId,
  prefix,
  onClose,
}: {
  apiId: string;
  prefix?: string | undefined;
  onClose: () => void;
}) {
  const create = useCall("keys.createKey");
  const [draft, setDraft] = useState<Draft>({ ...emptyDraft, prefix: prefix ?? "" });
  const [preset, setPreset] = useState<string>();
  const [isJsonShown, setJsonShown] = useState(false);
  const [created, setCreated] = useState<{ keyId: string; secret: Secret }>();
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }));
  const { input, problems } = useMemo(() => inputOf(apiId, draft), [apiId, draft]);
  const fields = { draft, problems, set };
  const firstProblem = Object.values(problems).find((problem) => problem !== undefined);

  if (created) return <CreatedKey apiId={apiId} {...created} title="Key created" onClose={onClose} />;
  const submit = () => {
    if (create.isPending) return;
    create.mutate(input, { onSuccess: ({ data }) => setCreated({ keyId: data.keyId, secret: data.key }) });
  };
  return (
    <Dialog
      title="Create key"
      isOpen
      onClose={onClose}
      onSubmit={submit}
      error={create.error}
      size="lg"
      footer={
        <>
          <Button kind="quiet" className="mr-auto" onPress={() => setJsonShown(!isJsonShown)}>
            {isJsonShown ? "Hide the call" : "Show the call"}
          </Button>
          <CopyButton text={() => snippetsOf("keys.createKey", input).curl}>Copy as curl</CopyButton>
          <Button onPress={onClose}>Cancel</Button>
          <Button
            kind="primary"
            needs={`apis.${apiId}.create_key`}
            type="submit"
            isPending={create.isPending}
            offBecause={firstProblem}
          >
            Create key
          </Button>
        </>
      }
    >
      <KeyPresets
        draft={draft}
        apiPrefix={prefix}
        chosen={preset}
        onChoose={(id, begun) => {
          setPreset(id);
          setDraft(begun);
        }}
      />
      <CommonFields {...fields} apiPrefix={prefix} />
      <div className="border-b border-line">
        <AccessFields {...fields} />
        <LimitFields key={preset} {...fields} />
        <OtherFields {...fields} apiId={apiId} />
      </div>
      {draft.expires !== undefined && (
        <p className="text-xs text-quiet">The key stops working on {localDay(draft.expires)}.</p>
      )}
      {isJsonShown && <Code text={JSON.stringify(input, null, 2)} label="Copy the JSON" />}
    </Dialog>
  );
}
