import { useQuery } from "@tanstack/react-query";
import { read } from "../../api/client.ts";
import { type Schema, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { TagsField } from "../../ui/fields/fields.tsx";

interface Field {
  value: readonly string[];
  onChange: (value: readonly string[]) => void;
}

/** Permissions that keys with a plan have. */
export function PermissionsField({ value, onChange, problem }: Field & { problem?: string | undefined }) {
  const known = useQuery({
    ...read("permissions.listPermissions", { limit: 100 }),
    enabled: useCan()("permissions.*.read_permission"),
  });
  return (
    <TagsField
      label="Permissions"
      description="Slugs that keys with the plan have besides their own. Identities give none to their keys. Enter ends each."
      value={value}
      onChange={onChange}
      problem={problem}
      suggestions={known.data?.map(({ slug }) => slug) ?? []}
      placeholder="documents.read"
    />
  );
}

/** Roles that keys with a plan have. */
export function RolesField({ value, onChange }: Field) {
  const known = useQuery({
    ...read("permissions.listRoles", { limit: 100 }),
    enabled: useCan()("permissions.*.read_role"),
  });
  return (
    <TagsField
      label="Roles"
      description="Names of existing roles that keys with the plan have besides their own."
      value={value}
      onChange={onChange}
      suggestions={known.data?.map(({ name }) => name) ?? []}
    />
  );
}

/** Why permissions cannot be sent. `schema`: that of the list. */
export function permissionsProblem(value: readonly string[], { items = {} }: Schema): string | undefined {
  const wrong = value.find((slug) => textProblem(items, slug));
  return wrong === undefined ? undefined : `${wrong} is no slug of a permission.`;
}
