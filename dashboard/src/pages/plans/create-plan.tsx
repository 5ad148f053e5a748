import schema from "virtual:operation/plans.createPlan";
import { useState } from "react";
import type { Input } from "../../api/client.ts";
import { itemsOf, member, textProblem } from "../../api/schema.ts";
import { type ConcurrencyDraft, ConcurrencyField, concurrencyInputs } from "../../ui/fields/concurrency-field.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { JsonField, parseObject } from "../../ui/fields/json-field.tsx";
import {
  newRatelimit,
  type RatelimitDraft,
  RatelimitsField,
  ratelimitInputs,
} from "../../ui/fields/ratelimits-field.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import {
  AmountFields,
  BudgetFields,
  balanceDraft,
  balanceInput,
  budgetDraft,
  budgetInput,
} from "./plan-balance-fields.tsx";
import { PermissionsField, permissionsProblem, RolesField } from "./plan-grants.tsx";

/** A plan has one of them: credits are for its keys, and a budget for its identities. */
type Balance = "none" | "credits" | "budget";

const balances: readonly { value: Balance; label: string }[] = [
  { value: "none", label: "None" },
  { value: "credits", label: "Credits for each key" },
  { value: "budget", label: "A budget for each identity" },
];

/** Creates a plan. */
export function CreatePlan({ onClose, onCreated }: { onClose: () => void; onCreated: (planId: string) => void }) {
  const [name, setName] = useState("");
  const [drafts, setDrafts] = useState<readonly RatelimitDraft[]>([newRatelimit]);
  const [concurrencyDrafts, setConcurrencyDrafts] = useState<readonly ConcurrencyDraft[]>([]);
  const [balance, setBalance] = useState<Balance>("none");
  const [credits, setCredits] = useState(balanceDraft(undefined));
  const [budget, setBudget] = useState(budgetDraft(undefined));
  const [permissions, setPermissions] = useState<readonly string[]>([]);
  const [roles, setRoles] = useState<readonly string[]>([]);
  const [meta, setMeta] = useState("");
  const nameProblem = textProblem(member(schema, "name"), name);
  const limits = ratelimitInputs(drafts, itemsOf(schema, "ratelimits"));
  const concurrency = concurrencyInputs(concurrencyDrafts, member(schema, "concurrency"));
  const slugProblem = permissionsProblem(permissions, member(schema, "permissions"));
  const parsed = parseObject(meta);
  const givenCredits = balance === "credits" ? balanceInput(credits, member(schema, "credits")) : undefined;
  const givenBudget = balance === "budget" ? budgetInput(budget, member(schema, "budget")) : undefined;
  const input: Input<"plans.createPlan"> = {
    name,
    ...(limits.value.length > 0 && { ratelimits: limits.value }),
    ...(concurrency.value.length > 0 && { concurrency: concurrency.value }),
    ...(givenCredits && { credits: givenCredits.value }),
    ...(givenBudget && { budget: givenBudget.value }),
    ...(permissions.length > 0 && { permissions }),
    ...(roles.length > 0 && { roles }),
    ...(parsed.value && { meta: parsed.value }),
  };
  return (
    <FormDialog
      title="Create plan"
      operation="plans.createPlan"
      input={input}
      problem={
        (name === "" ? "Enter a name" : nameProblem) ??
        limits.problem ??
        concurrency.problem ??
        givenCredits?.problem ??
        givenBudget?.problem ??
        slugProblem ??
        parsed.problem
      }
      action="Create plan"
      needs="plans.*.create_plan"
      onClose={onClose}
      onDone={({ data: { planId } }) => {
        toast({ text: `Created the plan ${name}.` });
        onClose();
        onCreated(planId);
      }}
    >
      <TextField
        label="Name"
        description={member(schema, "name").description}
        value={name}
        onChange={setName}
        problem={name === "" ? undefined : nameProblem}
        placeholder="gold"
        isMono
        autoFocus
      />
      <div>
        <h3 className="label mb-1">Limits of each key, and of each identity over all its keys</h3>
        <RatelimitsField value={drafts} onChange={setDrafts} problem={limits.problem} />
      </div>
      <div>
        <h3 className="label mb-1">Calls at once of each key, and of each identity over all its keys</h3>
        <ConcurrencyField
          value={concurrencyDrafts}
          onChange={setConcurrencyDrafts}
          problem={concurrency.problem}
          max={member(schema, "concurrency").maxItems}
        />
      </div>
      <Select label="Balance" value={balance} onChange={setBalance} options={balances} />
      {balance === "credits" && (
        <AmountFields value={credits} onChange={setCredits} description="Of each key, or of its reroll chain." />
      )}
      {balance === "budget" && (
        <BudgetFields value={budget} onChange={setBudget} description="Of each identity, for all its keys." isNew />
      )}
      <PermissionsField value={permissions} onChange={setPermissions} problem={slugProblem} />
      <RolesField value={roles} onChange={setRoles} />
      <JsonField label="Metadata" value={meta} onChange={setMeta} description="A JSON object. Empty: none." />
    </FormDialog>
  );
}
