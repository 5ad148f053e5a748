import schema from "virtual:operation/budgets.createBudget";
import type { Budget } from "@latchkey/sdk";
import { useState } from "react";
import type { Input } from "../../api/client.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { JsonField, parseObject } from "../../ui/fields/json-field.tsx";
import { RefillFields, refillDraft, refillInput, whole } from "../../ui/fields/refill-field.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { OnEmptyField, ThresholdsField, thresholdsInput } from "./budget-fields.tsx";

/** Creates a budget, below `parent` if it is given. */
export function CreateBudget({
  parent,
  onClose,
  onCreated,
}: {
  parent?: Pick<Budget, "budgetId" | "name" | "unit">;
  onClose: () => void;
  onCreated: (budgetId: string) => void;
}) {
  const [name, setName] = useState("");
  const [remaining, setRemaining] = useState("1000");
  const [unit, setUnit] = useState("");
  const [refill, setRefill] = useState(() => refillDraft(undefined, 1_000));
  const [onEmpty, setOnEmpty] = useState<Budget["onEmpty"]>("deny");
  const [thresholds, setThresholds] = useState<readonly string[]>([]);
  const [meta, setMeta] = useState("");
  const nameProblem = textProblem(member(schema, "name"), name);
  const unitProblem = unit === "" ? undefined : textProblem(member(schema, "unit"), unit);
  const remainingProblem = numberProblem(member(schema, "remaining"), whole(remaining));
  const refilled = refillInput(refill, member(schema, "refill"));
  const marks = thresholdsInput(thresholds, member(schema, "thresholds"));
  const parsed = parseObject(meta);
  const input: Input<"budgets.createBudget"> = {
    name,
    remaining: whole(remaining),
    ...(refilled.value && { refill: refilled.value }),
    ...(parent && { parentId: parent.budgetId }),
    ...(onEmpty === "allow" && { onEmpty }),
    ...(marks.value.length > 0 && { thresholds: marks.value }),
    ...(unit !== "" && { unit }),
    ...(parsed.value && { meta: parsed.value }),
  };
  return (
    <FormDialog
      title={parent ? `Create budget below ${parent.name}` : "Create budget"}
      operation="budgets.createBudget"
      input={input}
      problem={
        (name === "" ? "Enter a name" : nameProblem) ??
        remainingProblem ??
        refilled.problem ??
        marks.problem ??
        unitProblem ??
        parsed.problem
      }
      action="Create budget"
      needs={["budgets.*.create_budget", ...(parent ? [`budgets.${parent.budgetId}.assign_budget`] : [])]}
      onClose={onClose}
      onDone={({ data: { budgetId } }) => {
        toast({ text: `Created the budget ${name}.` });
        onClose();
        onCreated(budgetId);
      }}
    >
      <TextField
        label="Name"
        description={member(schema, "name").description}
        value={name}
        onChange={setName}
        problem={name === "" ? undefined : nameProblem}
        placeholder="Research"
        autoFocus
      />
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          label="Credits"
          type="number"
          description={member(schema, "remaining").description}
          value={remaining}
          onChange={setRemaining}
          problem={remainingProblem}
        />
        {parent ? (
          <p className="text-xs text-quiet sm:pt-6">
            {parent.unit === undefined ? "The tree has no unit." : `The unit is that of the tree: ${parent.unit}.`}
          </p>
        ) : (
          <TextField
            label="Unit"
            description="What a credit is, such as usd_micro or token. It never changes. Empty: none."
            value={unit}
            onChange={setUnit}
            problem={unitProblem}
            isMono
          />
        )}
        <RefillFields value={refill} onChange={setRefill} />
      </div>
      {refilled.problem && <p className="text-xs text-bad">{refilled.problem}</p>}
      <ThresholdsField value={thresholds} onChange={setThresholds} problem={marks.problem} />
      <OnEmptyField value={onEmpty} onChange={setOnEmpty} />
      <JsonField label="Metadata" value={meta} onChange={setMeta} description="A JSON object. Empty: none." />
    </FormDialog>
  );
}
