import schema from "virtual:operation/keys.updateKey";
import { member } from "../../api/schema.ts";
import { ConcurrencyField, type ConcurrencyInput, concurrencyInputs } from "../../ui/fields/concurrency-field.tsx";
import { InlineEditor } from "../../ui/fields/inline-edit.tsx";

/** Edits how many calls run at once. Keys and identities have the same bounds. */
export function ConcurrencyEditor({
  before,
  save,
  onClose,
}: {
  before: readonly ConcurrencyInput[];
  /** Null: no limit. */
  save: (concurrency: ConcurrencyInput[] | null) => Promise<unknown>;
  onClose: () => void;
}) {
  const drafts = before.map(({ name, limit }) => ({ name, limit: String(limit) }));
  const list = member(schema, "concurrency");
  return (
    <InlineEditor
      field="concurrency"
      draft={() => drafts}
      change={(draft) => {
        if (JSON.stringify(draft) === JSON.stringify(drafts)) return {};
        const { value, problem } = concurrencyInputs(draft, list);
        return { value: value.length === 0 ? null : value, problem };
      }}
      editor={(draft, set) => <ConcurrencyField value={draft} onChange={set} max={list.maxItems} />}
      save={(value) => save(value as ConcurrencyInput[] | null)}
      onClose={onClose}
    />
  );
}
