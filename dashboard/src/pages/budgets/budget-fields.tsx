import type { Budget } from "@latchkey/sdk";
import { numberProblem, type Schema } from "../../api/schema.ts";
import { TagsField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { onEmptyTexts } from "./budget-use.ts";

/** What happens to calls that a budget does not cover. */
export function OnEmptyField({
  value,
  onChange,
}: {
  value: Budget["onEmpty"];
  onChange: (value: Budget["onEmpty"]) => void;
}) {
  return (
    <Select
      label="A call that it does not cover"
      value={value}
      onChange={onChange}
      options={(["deny", "allow"] as const).map((value) => ({ value, label: onEmptyTexts[value] }))}
    />
  );
}

/** Thresholds as they are entered. */
export function ThresholdsField({
  value,
  onChange,
  problem,
}: {
  value: readonly string[];
  onChange: (value: readonly string[]) => void;
  problem?: string | undefined;
}) {
  return (
    <TagsField
      label="Thresholds"
      description="Percentages of the period's credits. A spend that reaches one writes an event. Enter ends each."
      value={value}
      onChange={onChange}
      problem={problem}
      placeholder="80"
    />
  );
}

/** The thresholds as an operation takes them. `schema`: that of `thresholds` of the operation. */
export function thresholdsInput(texts: readonly string[], schema: Schema) {
  const { items = {}, maxItems = Number.POSITIVE_INFINITY } = schema;
  const value = texts.map((text) => Number(text.replace(/%$/, "")));
  const wrong = value.map((threshold) => numberProblem(items, threshold)).find(Boolean);
  return { value, problem: value.length > maxItems ? `Use at most ${maxItems} thresholds.` : wrong };
}
