import type { Input } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { Switch } from "../../ui/fields/fields.tsx";

export type PortalAction = NonNullable<Input<"portal.createSession">["actions"]>[number];

/** What a session may do: in words, and the permission that the root key needs for it. */
export const portalActions: Record<PortalAction, { readonly label: string; readonly needs: string }> = {
  list: { label: "See the keys", needs: "apis.{apiId}.read_key" },
  usage: { label: "See their usage", needs: "apis.{apiId}.read_analytics" },
  create: { label: "Create keys", needs: "apis.{apiId}.create_key" },
  reroll: { label: "Replace keys", needs: "apis.{apiId}.create_key" },
  rename: { label: "Rename keys", needs: "apis.{apiId}.update_key" },
  delete: { label: "Delete keys", needs: "apis.{apiId}.delete_key" },
  left: { label: "See what is left of their credits and budgets", needs: "budgets.*.read_budget" },
};
const allActions = Object.keys(portalActions) as PortalAction[];

/** What is chosen at first: all but what tells owners of the budgets of a company. */
export const usualActions = allActions.filter((action) => action !== "left");

/** Why the root key cannot let a session do this. */
export function useLacks(apiId: string): (action: PortalAction) => string | undefined {
  const can = useCan();
  return (action) => {
    const permission = portalActions[action].needs.replace("{apiId}", apiId || "*");
    return can(permission) ? undefined : `The root key lacks the permission ${permission}`;
  };
}

/** Switches for what the owner of keys may do. */
export function ActionsField({
  label,
  value,
  onChange,
  lacks = () => undefined,
}: {
  label: string;
  value: readonly PortalAction[];
  onChange: (actions: PortalAction[]) => void;
  /** Why an action cannot be chosen. */
  lacks?: (action: PortalAction) => string | undefined;
}) {
  return (
    <fieldset>
      <legend className="label mb-2">{label}</legend>
      <div className="grid gap-2 sm:grid-cols-2">
        {allActions.map((action) => (
          <Switch
            key={action}
            label={portalActions[action].label}
            description={lacks(action)}
            isDisabled={lacks(action) !== undefined}
            value={value.includes(action)}
            onChange={(isOn) =>
              onChange(allActions.filter((other) => (other === action ? isOn : value.includes(other))))
            }
          />
        ))}
      </div>
    </fieldset>
  );
}
