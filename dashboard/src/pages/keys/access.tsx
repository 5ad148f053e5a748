import type { Key } from "@latchkey/sdk";
import { useQueries } from "@tanstack/react-query";
import { lazyRouteComponent } from "@tanstack/react-router";
import { useMemo } from "react";
import { read } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { useCan } from "../../api/session.ts";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { Addresses } from "../../ui/text/addresses.tsx";

const load = () => loadCode(() => import("./key-editors.tsx"));
const RolesEditor = lazyRouteComponent(load, "RolesEditor");
const PermissionsEditor = lazyRouteComponent(load, "PermissionsEditor");
const AddressesEditor = lazyRouteComponent(load, "AddressesEditor");

/** Roles, the effective permissions with whence each comes, and the addresses that may use the key. */
export function KeyAccess({ of: key }: { of: Key }) {
  const { apiId, roles = [], permissions = [] } = key;
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
        <EditInPlace
          label="the roles"
          needs={needs}
          display={roles.length === 0 ? <None /> : <Names names={roles} />}
          editor={(onClose) => <RolesEditor of={key} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Permissions">
        <EditInPlace
          label="the direct permissions"
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
          editor={(onClose) => <PermissionsEditor of={key} direct={direct} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Allowed addresses">
        <EditInPlace
          label="the allowed addresses"
          needs={needs}
          display={<Addresses of={key.allowedIps} none="every address that the API allows" />}
          editor={(onClose) => <AddressesEditor of={key} onClose={onClose} />}
        />
      </Fact>
    </Facts>
  );
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
