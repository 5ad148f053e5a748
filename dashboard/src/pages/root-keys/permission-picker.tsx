import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../../api/client.ts";
import type { Schema } from "../../api/schema.ts";
import { textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { Switch, TagsField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { Fold } from "../../ui/fold.tsx";
import { permissionsOf, tasks } from "./tasks.ts";

/** Why these cannot be the permissions of a root key, in one sentence. `schema`: that of the list. */
export function permissionsProblem(permissions: readonly string[], schema: Schema): string | undefined {
  if (permissions.length === 0) return "Choose at least one task";
  const wrong = permissions.find((permission) => textProblem(schema.items!, permission) !== undefined);
  return wrong && `${wrong} is not a permission: use resource.id.action, such as apis.*.verify_key.`;
}

/** Chooses the permissions of a root key by what it is for. The exact ones are below, and can be typed. */
export function PermissionPicker({
  value,
  onChange,
  problem,
}: {
  value: readonly string[];
  onChange: (value: string[]) => void;
  problem?: string | undefined;
}) {
  const can = useCan();
  const [scope, setScope] = useState("*");
  const { data: apis = [] } = useQuery({
    ...read("apis.listApis", { limit: 100 }),
    enabled: can("apis.*.read_api"),
  });
  const apiId = scope === "*" ? undefined : scope;
  const changeScope = (next: string) => {
    setScope(next);
    // What was chosen for the APIs before holds for the new ones.
    const moved = (permission: string) => {
      const [resource, id, action] = permission.split(".");
      const isOfApi = (resource === "apis" || resource === "replicas") && action !== "create_api";
      return isOfApi && id === scope ? `${resource}.${next}.${action}` : permission;
    };
    onChange([...new Set(value.map(moved))]);
  };
  return (
    <div className="space-y-4">
      {apis.length > 0 && (
        <Select
          label="APIs"
          value={scope}
          onChange={changeScope}
          options={[
            { value: "*", label: "All APIs, also those of the future" },
            ...apis.map(({ apiId, name }) => ({ value: apiId, label: `Only ${name}` })),
          ]}
        />
      )}
      <fieldset>
        <legend className="label mb-2">What is it for?</legend>
        <div className="grid gap-x-6 gap-y-3 sm:grid-cols-2">
          {tasks.map((task) => {
            const needed = permissionsOf(task, apiId);
            const lacking = needed.find((permission) => !can(permission === "*" ? "*.*.*" : permission));
            return (
              <Switch
                key={task.title}
                label={task.title}
                description={
                  lacking === undefined ? task.description : `Your root key lacks ${lacking}, so it cannot give it.`
                }
                isDisabled={lacking !== undefined}
                value={needed.every((permission) => value.includes(permission))}
                onChange={(isOn) =>
                  onChange(
                    isOn
                      ? [...new Set([...value, ...needed])]
                      : value.filter((permission) => !needed.includes(permission)),
                  )
                }
              />
            );
          })}
        </div>
      </fieldset>
      <Fold title="Exact permissions" summary={value.length === 1 ? "1 permission" : `${value.length} permissions`}>
        <TagsField
          label="Permissions"
          description="resource.id.action; each of the three may be *."
          value={value}
          onChange={onChange}
          problem={value.length === 0 ? undefined : problem}
          placeholder="apis.*.verify_key"
          suggestions={[...new Set(tasks.flatMap(({ permissions }) => permissions))]}
        />
      </Fold>
    </div>
  );
}
