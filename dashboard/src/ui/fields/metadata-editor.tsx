import { InlineEditor } from "./inline-edit.tsx";
import { JsonField, parseObject } from "./json-field.tsx";

/** The editor of metadata in place. `empty`: what an empty field sends. */
export function MetadataEditor({
  before,
  empty,
  save,
  onClose,
}: {
  /** The JSON text that it begins with. */
  before: string;
  empty: null | Record<string, never>;
  save: (value: unknown) => Promise<unknown>;
  onClose: () => void;
}) {
  return (
    <InlineEditor
      field="meta"
      draft={() => before}
      change={(draft) => {
        if (draft.trim() === before.trim()) return {};
        const { value = empty, problem } = parseObject(draft);
        return problem === undefined ? { value } : { problem };
      }}
      editor={(draft, set) => (
        <JsonField
          label="Metadata"
          value={draft}
          onChange={set}
          description={`A JSON object. Empty: ${empty === null ? "none" : "{}"}.`}
        />
      )}
      save={save}
      onClose={onClose}
    />
  );
}
