import type { Permission, Role } from "@latchkey/sdk";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { compilePermissions, holds } from "../../../../engine/src/rules/permissions.ts";
import { call, refresh, useCall } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Tick } from "../../ui/fields/tick.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { Filters, SearchField } from "../../ui/tables/filters.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { QueryTester } from "./query-tester.tsx";
import { PermissionDialog, RoleDialog } from "./role-dialogs.tsx";

type Open =
  | { readonly dialog: "role"; readonly of?: Role }
  | { readonly dialog: "permission"; readonly of?: Permission }
  | { readonly dialog: "delete role"; readonly of: Role }
  | { readonly dialog: "delete permission"; readonly of: Permission };

/** Roles and permissions as a matrix, and a tester of permission queries. */
export function RolesPage() {
  const { q = "", query = "" } = useSearch({ from: "/shell/roles" });
  const navigate = useNavigate({ from: "/roles" });
  const can = useCan();
  const [open, setOpen] = useState<Open>();
  const lacks = ["permissions.*.read_role", "permissions.*.read_permission"].find((permission) => !can(permission));
  const roles = useRows("permissions.listRoles", { limit: 100 }, lacks === undefined);
  const permissions = useRows(
    "permissions.listPermissions",
    { limit: 100, ...(q !== "" && { search: q }) },
    lacks === undefined,
  );
  const search = useCallback(
    (q: string) =>
      void navigate({ search: ({ query }) => ({ ...(q !== "" && { q }), ...(query && { query }) }), replace: true }),
    [navigate],
  );
  const setQuery = useCallback(
    (query: string) =>
      void navigate({ search: ({ q }) => ({ ...(q && { q }), ...(query !== "" && { query }) }), replace: true }),
    [navigate],
  );
  const isEmpty = roles.rows?.length === 0 && permissions.rows?.length === 0 && q === "";
  const createRole = (
    <Button kind="primary" needs="permissions.*.create_role" onPress={() => setOpen({ dialog: "role" })}>
      <Plus aria-hidden />
      Create role
    </Button>
  );
  return (
    <Page
      title="Roles and permissions"
      summary="What keys may do in your product. A role is a set of permissions; a key has roles, permissions or both."
      actions={
        <>
          <Button needs="permissions.*.create_permission" onPress={() => setOpen({ dialog: "permission" })}>
            <Plus aria-hidden />
            Create permission
          </Button>
          {createRole}
        </>
      }
    >
      {lacks !== undefined ? (
        <EmptyState title="The root key may not read roles and permissions">
          <p>It lacks the permission {lacks}. Sign in with another root key, or give this permission to yours.</p>
        </EmptyState>
      ) : isEmpty ? (
        <EmptyState title="No roles and no permissions yet" action={createRole}>
          <p>
            Create a role such as editor with the permissions documents.read and documents.write. A verification then
            asks for one of them, and refuses keys that do not have it.
          </p>
        </EmptyState>
      ) : (
        <>
          <Filters>
            <SearchField label="Search permissions" placeholder="Slug, name or id" value={q} onChange={search} />
          </Filters>
          {roles.error || permissions.error || !roles.rows || !permissions.rows ? (
            <Loading of={roles.error ? roles : permissions} lines={8} />
          ) : permissions.rows.length === 0 && q !== "" ? (
            <EmptyState title={`No permission matches “${q}”`} />
          ) : (
            <Matrix roles={roles.rows} permissions={permissions.rows} onOpen={setOpen} />
          )}
          <div className="mt-3 mb-5 flex flex-wrap gap-2">
            {permissions.hasMore && <Button onPress={permissions.onMore}>Show more permissions</Button>}
            {roles.hasMore && <Button onPress={roles.onMore}>Show more roles</Button>}
          </div>
          <Section title="Try a query">
            <QueryTester roles={roles.rows ?? []} value={query} onChange={setQuery} />
          </Section>
        </>
      )}
      {open?.dialog === "role" && (
        <RoleDialog
          of={open.of}
          slugs={permissions.rows?.map(({ slug }) => slug) ?? []}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open?.dialog === "permission" && <PermissionDialog of={open.of} onClose={() => setOpen(undefined)} />}
      <Deletion of={open} onClose={() => setOpen(undefined)} />
    </Page>
  );
}

function Matrix({
  roles,
  permissions,
  onOpen,
}: {
  roles: readonly Role[];
  permissions: readonly Permission[];
  onOpen: (open: Open) => void;
}) {
  const can = useCan();
  const set = useCall("permissions.setRolePermissions");
  const lacks = ["permissions.*.add_permission_to_role", "permissions.*.remove_permission_from_role"].find(
    (permission) => !can(permission),
  );
  const compiled = useMemo(
    () =>
      new Map(roles.map(({ id, permissions = [] }) => [id, compilePermissions(permissions.map(({ slug }) => slug))])),
    [roles],
  );
  const toggle = async ({ id, name, permissions = [] }: Role, { slug }: Permission, isOn: boolean) => {
    const before = permissions.map(({ slug }) => slug);
    const after = isOn ? [...before, slug] : before.filter((other) => other !== slug);
    try {
      await set.mutateAsync({ role: id, permissions: after });
      toast({
        text: isOn ? `${name} has ${slug} now.` : `${name} no longer has ${slug}.`,
        undo: () => set.mutateAsync({ role: id, permissions: before }),
      });
    } catch (error) {
      toastError(error);
    }
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must be able to scroll it.
    <div className="relative overflow-x-auto" tabIndex={0} role="region" aria-label="Permissions of roles">
      <table className="w-full border-collapse text-left">
        <thead>
          <tr className="border-b border-line align-bottom">
            <th scope="col" className="label sticky left-0 min-w-48 bg-paper py-2 pr-4 pl-2 font-medium">
              Permission
            </th>
            {roles.map((role) => (
              <th key={role.id} scope="col" className="px-2 py-1.5 text-center font-medium">
                <span className="flex items-center justify-center gap-0.5 whitespace-nowrap" title={role.description}>
                  <Link
                    to="/roles"
                    search={{ query: (role.permissions ?? []).map(({ slug }) => slug).join(" AND ") }}
                    className="max-w-32 truncate hover:underline"
                  >
                    {role.name}
                  </Link>
                  <MoreMenu
                    label={`Actions of the role ${role.name}`}
                    isSmall
                    entries={[
                      {
                        label: "Edit the role…",
                        needs: "permissions.*.update_role",
                        onAction: () => onOpen({ dialog: "role", of: role }),
                      },
                      {
                        label: "Delete the role…",
                        isDanger: true,
                        needs: "permissions.*.delete_role",
                        onAction: () => onOpen({ dialog: "delete role", of: role }),
                      },
                    ]}
                  />
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {permissions.map((permission) => (
            <tr key={permission.id} className="border-b border-line hover:bg-hover">
              <th scope="row" className="sticky left-0 bg-paper py-1 pr-4 pl-2 font-normal">
                <span className="flex items-center justify-between gap-2">
                  <span className="min-w-0" title={permission.description}>
                    <code className="block truncate font-mono text-xs">{permission.slug}</code>
                    {permission.name !== permission.slug && (
                      <span className="block truncate text-xs text-quiet">{permission.name}</span>
                    )}
                  </span>
                  <MoreMenu
                    label={`Actions of the permission ${permission.slug}`}
                    isSmall
                    entries={[
                      {
                        label: "Edit the permission…",
                        needs: "permissions.*.update_permission",
                        onAction: () => onOpen({ dialog: "permission", of: permission }),
                      },
                      {
                        label: "Delete the permission…",
                        isDanger: true,
                        needs: "permissions.*.delete_permission",
                        onAction: () => onOpen({ dialog: "delete permission", of: permission }),
                      },
                    ]}
                  />
                </span>
              </th>
              {roles.map((role) => {
                const isDirect = (role.permissions ?? []).some(({ slug }) => slug === permission.slug);
                const isCovered = !isDirect && holds(compiled.get(role.id)!, permission.slug);
                return (
                  <td key={role.id} className="px-2 text-center">
                    <span
                      className="inline-flex items-center"
                      title={
                        lacks !== undefined
                          ? `The root key lacks the permission ${lacks}`
                          : isCovered
                            ? "By a wildcard of the role"
                            : undefined
                      }
                    >
                      <Tick
                        label={`${role.name}: ${permission.slug}${isCovered ? ", by a wildcard" : ""}`}
                        value={isDirect}
                        isMixed={isCovered}
                        isDisabled={lacks !== undefined || set.isPending}
                        onChange={(isOn) => void toggle(role, permission, isOn)}
                      />
                    </span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      <p className="mt-2 text-xs text-quiet">
        A tick: the role has the permission. A line: a wildcard of the role, such as billing.*, includes it.{" "}
        {counted(permissions.length, "permission")}, {counted(roles.length, "role")}.
      </p>
    </div>
  );
}

function Deletion({ of, onClose }: { of: Open | undefined; onClose: () => void }) {
  const role = of?.dialog === "delete role" ? of.of : undefined;
  const permission = of?.dialog === "delete permission" ? of.of : undefined;
  return (
    <>
      <ConfirmDialog
        title="Delete the role"
        action="Delete role"
        typed={role?.name ?? ""}
        isOpen={role !== undefined}
        onClose={onClose}
        onConfirm={async () => {
          await call("permissions.deleteRole", { role: role!.id });
          await refresh();
          toast({ text: `Deleted the role ${role!.name}.` });
        }}
      >
        Keys with the role <strong className="font-medium">{role?.name}</strong> lose its permissions at once. This
        cannot be undone.
      </ConfirmDialog>
      <ConfirmDialog
        title="Delete the permission"
        action="Delete permission"
        typed={permission?.slug ?? ""}
        isOpen={permission !== undefined}
        onClose={onClose}
        onConfirm={async () => {
          await call("permissions.deletePermission", { permission: permission!.id });
          await refresh();
          toast({ text: `Deleted the permission ${permission!.slug}.` });
        }}
      >
        Roles and keys lose <code className="font-mono text-xs">{permission?.slug}</code> at once. This cannot be
        undone.
      </ConfirmDialog>
    </>
  );
}
