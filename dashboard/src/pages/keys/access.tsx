import type { Key } from "@latchkey/sdk";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { call, read, refresh } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { TagsField } from "../../ui/fields.tsx";
import { InlineEdit } from "../../ui/inline-edit.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";

/** Roles, and the effective permissions with whence each comes. */
export function KeyAccess({ of: key }: { of: Key }) {
  const { keyId, apiId, roles = [], permissions = [] } = key;
  const can = useCan();
  const needs = `apis.${apiId}.update_key`;
  const isAllowed = can("permissions.*.read_role");
  const ofRoles = useQueries({
    queries: roles.map((role) => ({ ...read("permissions.getRole", { role }), enabled: isAllowed })),
    combine: (results) => results.map(({ data }) => data),
  });
  const sources = useMemo(() => {
    const found = new Map<string, string[]>(permissions.map((slug) => [slug, []]));
    for (const role of ofRoles) for (const { slug } of role?.permissions ?? []) found.get(slug)?.push(role!.name);
    return [...found].sort(([a], [b]) => a.localeCompare(b));
  }, [permissions, ofRoles]);
  const direct = sources.filter(([, roles]) => roles.length === 0).map(([slug]) => slug);

  return (
    <Facts>
      <Fact name="Roles">
        <InlineEdit
          label="the roles"
          field="roles"
          needs={needs}
          display={roles.length === 0 ? <None /> : <Names names={roles} />}
          draft={() => roles as readonly string[]}
          change={(draft) => (draft.join() === roles.join() ? {} : { value: draft })}
          editor={(draft, set) => <RolesField value={draft} onChange={set} />}
          save={async (value) => {
            await call("keys.setRoles", { keyId, roles: value as string[] });
            await refresh();
          }}
        />
      </Fact>
      <Fact name="Permissions">
        <InlineEdit
          label="the direct permissions"
          field="permissions"
          needs={needs}
          display={
            sources.length === 0 ? (
              <None />
            ) : (
              <ul className="space-y-1">
                {sources.map(([slug, roles]) => (
                  <li key={slug} className="flex flex-wrap items-baseline gap-x-3">
                    <code className="font-mono text-xs">{slug}</code>
                    <span className="text-xs text-quiet">
                      {roles.length > 0
                        ? `from the role ${roles.join(", ")}`
                        : isAllowed || key.roles === undefined
                          ? "direct"
                          : ""}
                    </span>
                  </li>
                ))}
              </ul>
            )
          }
          draft={() => direct as readonly string[]}
          change={(draft) => {
            const [added, removed] = difference(direct, draft);
            return added.length + removed.length === 0 ? {} : { value: draft };
          }}
          editor={(draft, set) => <PermissionsField value={draft} onChange={set} />}
          save={async (value) => {
            const [added, removed] = difference(direct, value as string[]);
            if (added.length > 0) await call("keys.addPermissions", { keyId, permissions: added });
            if (removed.length > 0) await call("keys.removePermissions", { keyId, permissions: removed });
            await refresh();
          }}
        />
      </Fact>
    </Facts>
  );
}

interface NamesFieldProps {
  value: readonly string[];
  onChange: (value: readonly string[]) => void;
}

function RolesField(props: NamesFieldProps) {
  const isAllowed = useCan()("permissions.*.read_role");
  const { data = [] } = useQuery({ ...read("permissions.listRoles", { limit: 100 }), enabled: isAllowed });
  return (
    <TagsField
      {...props}
      label="Roles"
      description="Names of existing roles."
      suggestions={data.map(({ name }) => name)}
    />
  );
}

function PermissionsField(props: NamesFieldProps) {
  const isAllowed = useCan()("permissions.*.read_permission");
  const { data = [] } = useQuery({ ...read("permissions.listPermissions", { limit: 100 }), enabled: isAllowed });
  return (
    <TagsField
      {...props}
      label="Direct permissions"
      description="Slugs. New ones are created. Permissions of roles stay as they are."
      suggestions={data.map(({ slug }) => slug)}
    />
  );
}

function difference(before: readonly string[], after: readonly string[]): [added: string[], removed: string[]] {
  return [after.filter((name) => !before.includes(name)), before.filter((name) => !after.includes(name))];
}

function Names({ names }: { names: readonly string[] }) {
  return (
    <span className="flex flex-wrap gap-1.5">
      {names.map((name) => (
        <span key={name} className="rounded-sm bg-field px-1.5 py-0.5">
          {name}
        </span>
      ))}
    </span>
  );
}
