import schema from "virtual:operation/identities.updateIdentity";
import { type Data, useCall } from "../../api/client.ts";
import { itemsOf } from "../../api/schema.ts";
import { InlineEditor } from "../../ui/fields/inline-edit.tsx";
import { MetadataEditor } from "../../ui/fields/metadata-editor.tsx";
import { RatelimitsField, ratelimitDraft, ratelimitInputs } from "../../ui/fields/ratelimits-field.tsx";

type Identity = Data<"identities.getIdentity">;

interface EditorProps {
  of: Identity;
  onClose: () => void;
}

export function LimitsEditor({ of: { id, ratelimits }, onClose }: EditorProps) {
  const { mutateAsync } = useCall("identities.updateIdentity");
  const before = ratelimits.map(ratelimitDraft);
  return (
    <InlineEditor
      field="ratelimits"
      draft={() => before}
      change={(draft) => {
        if (JSON.stringify(draft) === JSON.stringify(before)) return {};
        return ratelimitInputs(draft, itemsOf(schema, "ratelimits"));
      }}
      editor={(draft, set) => <RatelimitsField value={draft} onChange={set} alwaysApply />}
      save={(value) => mutateAsync({ identity: id, ratelimits: value as Identity["ratelimits"] })}
      onClose={onClose}
    />
  );
}

export function IdentityMetadataEditor({ of: { id }, before, onClose }: EditorProps & { before: string }) {
  const { mutateAsync } = useCall("identities.updateIdentity");
  return (
    <MetadataEditor
      before={before}
      empty={{}}
      save={(value) => mutateAsync({ identity: id, meta: value as Identity["meta"] })}
      onClose={onClose}
    />
  );
}
