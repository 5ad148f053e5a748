import schema from "virtual:operation/plans.updatePlan";
import type { Plan } from "@latchkey/sdk";
import type { ReactNode } from "react";
import { type Input, useCall } from "../../api/client.ts";
import { itemsOf, member } from "../../api/schema.ts";
import { type Change, InlineEditor } from "../../ui/fields/inline-edit.tsx";
import { MetadataEditor } from "../../ui/fields/metadata-editor.tsx";
import { RatelimitsField, ratelimitDraft, ratelimitInputs } from "../../ui/fields/ratelimits-field.tsx";
import { PermissionsField, permissionsProblem, RolesField } from "./plan-grants.tsx";
import { UpdatePreview } from "./plan-preview.tsx";

export interface EditorProps {
  of: Plan;
  onClose: () => void;
}

type Field = Exclude<keyof Input<"plans.updatePlan">, "plan">;

/** Saves one member of a plan. */
function usePlanUpdate({ planId }: Plan): (field: Field) => (value: unknown) => Promise<unknown> {
  const { mutateAsync } = useCall("plans.updatePlan");
  return (field) => (value) => mutateAsync({ plan: planId, [field]: value });
}

/** An editor that says, before it is saved, what the change does to how many keys. */
export function PlanEditor<Draft>({
  plan,
  field,
  before,
  change,
  editor,
  onClose,
}: {
  plan: Plan;
  field: Field;
  before: Draft;
  change: (draft: Draft) => Change;
  editor: (draft: Draft, set: (draft: Draft) => void) => ReactNode;
  onClose: () => void;
}) {
  const previewOf = ({ value, problem }: Change) =>
    value === undefined || problem !== undefined ? undefined : { plan: plan.planId, [field]: value };
  return (
    <InlineEditor
      field={field}
      draft={() => before}
      change={change}
      editor={(draft, set) => (
        <>
          {editor(draft, set)}
          <UpdatePreview input={previewOf(change(draft))} />
        </>
      )}
      save={usePlanUpdate(plan)(field)}
      onClose={onClose}
    />
  );
}

export function PlanLimitsEditor({ of: plan, onClose }: EditorProps) {
  const before = plan.ratelimits.map(ratelimitDraft);
  return (
    <PlanEditor
      plan={plan}
      field="ratelimits"
      before={before}
      change={(draft) =>
        JSON.stringify(draft) === JSON.stringify(before) ? {} : ratelimitInputs(draft, itemsOf(schema, "ratelimits"))
      }
      editor={(draft, set) => <RatelimitsField value={draft} onChange={set} />}
      onClose={onClose}
    />
  );
}

export function PlanPermissionsEditor({ of: plan, onClose }: EditorProps) {
  const before: readonly string[] = plan.permissions;
  return (
    <PlanEditor
      plan={plan}
      field="permissions"
      before={before}
      change={(draft) =>
        draft.join("\n") === before.join("\n")
          ? {}
          : { value: draft, problem: permissionsProblem(draft, member(schema, "permissions")) }
      }
      editor={(draft, set) => <PermissionsField value={draft} onChange={set} />}
      onClose={onClose}
    />
  );
}

export function PlanRolesEditor({ of: plan, onClose }: EditorProps) {
  const before: readonly string[] = plan.roles;
  return (
    <PlanEditor
      plan={plan}
      field="roles"
      before={before}
      change={(draft) => (draft.join("\n") === before.join("\n") ? {} : { value: draft })}
      editor={(draft, set) => <RolesField value={draft} onChange={set} />}
      onClose={onClose}
    />
  );
}

export function PlanMetadataEditor({ of: plan, before, onClose }: EditorProps & { before: string }) {
  return <MetadataEditor before={before} empty={null} save={usePlanUpdate(plan)("meta")} onClose={onClose} />;
}
