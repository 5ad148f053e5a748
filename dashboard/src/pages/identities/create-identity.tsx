import schema from "virtual:operation/identities.createIdentity";
import { useState } from "react";
import type { Input } from "../../api/client.ts";
import { itemsOf, member, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { type ConcurrencyDraft, ConcurrencyField, concurrencyInputs } from "../../ui/fields/concurrency-field.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { JsonField, parseObject } from "../../ui/fields/json-field.tsx";
import { type RatelimitDraft, RatelimitsField, ratelimitInputs } from "../../ui/fields/ratelimits-field.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { BudgetField } from "../budgets/budget-field.tsx";
import { PlanField } from "../plans/plan-field.tsx";

/** Creates an identity with its limits and metadata. */
export function CreateIdentity({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (identityId: string) => void;
}) {
  const can = useCan();
  const [externalId, setExternalId] = useState("");
  const [meta, setMeta] = useState("");
  const [budgetId, setBudgetId] = useState("");
  const [plan, setPlan] = useState("");
  const [drafts, setDrafts] = useState<readonly RatelimitDraft[]>([]);
  const [concurrencyDrafts, setConcurrencyDrafts] = useState<readonly ConcurrencyDraft[]>([]);
  const idProblem = textProblem(member(schema, "externalId"), externalId);
  const parsed = parseObject(meta);
  const limits = ratelimitInputs(drafts, itemsOf(schema, "ratelimits"));
  const concurrency = concurrencyInputs(concurrencyDrafts, member(schema, "concurrency"));
  const input: Input<"identities.createIdentity"> = {
    externalId,
    ...(parsed.value && { meta: parsed.value }),
    ...(limits.value.length > 0 && { ratelimits: limits.value }),
    ...(concurrency.value.length > 0 && { concurrency: concurrency.value }),
    ...(budgetId !== "" && { budgetId }),
    ...(plan !== "" && { plan }),
  };
  return (
    <FormDialog
      title="Create identity"
      operation="identities.createIdentity"
      input={input}
      problem={
        (externalId === "" ? "Enter an external id" : idProblem) ??
        parsed.problem ??
        limits.problem ??
        concurrency.problem
      }
      action="Create identity"
      needs="identities.*.create_identity"
      onClose={onClose}
      onDone={({ data: { identityId } }) => {
        toast({ text: `Created the identity ${externalId}.` });
        onClose();
        onCreated(identityId);
      }}
    >
      <TextField
        label="External id"
        description={member(schema, "externalId").description}
        value={externalId}
        onChange={setExternalId}
        problem={externalId === "" ? undefined : idProblem}
        placeholder="user_4021"
        isMono
        autoFocus
      />
      <JsonField label="Metadata" value={meta} onChange={setMeta} description={member(schema, "meta").description} />
      {can("plans.some.assign_plan") && <PlanField value={plan} onChange={setPlan} />}
      {can("budgets.some.assign_budget") && <BudgetField value={budgetId} onChange={setBudgetId} />}
      <div>
        <h3 className="label mb-1">Limits that all keys of the identity share</h3>
        <RatelimitsField value={drafts} onChange={setDrafts} problem={limits.problem} alwaysApply />
      </div>
      <div>
        <h3 className="label mb-1">Calls at once of all keys of the identity</h3>
        <ConcurrencyField
          value={concurrencyDrafts}
          onChange={setConcurrencyDrafts}
          problem={concurrency.problem}
          max={member(schema, "concurrency").maxItems}
        />
      </div>
    </FormDialog>
  );
}
