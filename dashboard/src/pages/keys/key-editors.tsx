import schema from "virtual:operation/keys.updateKey";
import type { Key } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { call, type Input, read, refresh, useCall } from "../../api/client.ts";
import { itemsOf, member, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { ExpiryField } from "../../ui/fields/expiry-field.tsx";
import { TagsField, TextField } from "../../ui/fields/fields.tsx";
import { type Change, InlineEditor } from "../../ui/fields/inline-edit.tsx";
import { MetadataEditor } from "../../ui/fields/metadata-editor.tsx";
import { RatelimitsField, ratelimitDraft, ratelimitInputs } from "../../ui/fields/ratelimits-field.tsx";
import { CreditsField, creditsDraft, creditsInput } from "./credits-field.tsx";

interface EditorProps {
  of: Key;
  onClose: () => void;
}

/** Saves one member of a key. */
function useKeyUpdate({ keyId }: Key): (field: keyof Input<"keys.updateKey">) => (value: unknown) => Promise<unknown> {
  const { mutateAsync } = useCall("keys.updateKey");
  return (field) => (value) => mutateAsync({ keyId, [field]: value });
}

function textChange(field: "name" | "externalId", before: string | undefined) {
  return (draft: string): Change => {
    const value = draft.trim();
    if (value === (before ?? "")) return {};
    return value === "" ? { value: null } : { value, problem: textProblem(member(schema, field), value) };
  };
}

export function NameEditor({ of: key, onClose }: EditorProps) {
  return (
    <InlineEditor
      field="name"
      draft={() => key.name ?? ""}
      change={textChange("name", key.name)}
      editor={(draft, set) => (
        <TextField label="Name" value={draft} onChange={set} autoFocus description="Empty: no name." />
      )}
      save={useKeyUpdate(key)("name")}
      onClose={onClose}
    />
  );
}

export function OwnerEditor({ of: key, onClose }: EditorProps) {
  const before = key.identity?.externalId;
  return (
    <InlineEditor
      field="externalId"
      draft={() => before ?? ""}
      change={textChange("externalId", before)}
      editor={(draft, set) => (
        <TextField
          label="Owner"
          value={draft}
          onChange={set}
          autoFocus
          description="Your own id of the user or company. Empty: the key belongs to nobody; the identity stays."
        />
      )}
      save={useKeyUpdate(key)("externalId")}
      onClose={onClose}
    />
  );
}

export function ExpiryEditor({ of: key, onClose }: EditorProps) {
  return (
    <InlineEditor
      field="expires"
      draft={() => key.expires}
      change={(draft) => (draft === key.expires ? {} : { value: draft ?? null })}
      editor={(draft, set) => <ExpiryField value={draft} onChange={set} />}
      save={useKeyUpdate(key)("expires")}
      onClose={onClose}
    />
  );
}

export function KeyMetadataEditor({ of: key, before, onClose }: EditorProps & { before: string }) {
  return <MetadataEditor before={before} empty={null} save={useKeyUpdate(key)("meta")} onClose={onClose} />;
}

export function CreditsEditor({ of: key, onClose }: EditorProps) {
  const { credits } = key;
  return (
    <InlineEditor
      field="credits"
      draft={() => creditsDraft(credits)}
      change={(draft) => {
        if (JSON.stringify(draft) === JSON.stringify(creditsDraft(credits))) return {};
        const { value, problem } = creditsInput(draft, member(schema, "credits"));
        if (!value) return { value: null };
        return { value: { ...value, ...(credits?.refill && !value.refill && { refill: null }) }, problem };
      }}
      editor={(draft, set) => <CreditsField value={draft} onChange={set} />}
      save={useKeyUpdate(key)("credits")}
      onClose={onClose}
    />
  );
}

export function LimitsEditor({ of: key, onClose }: EditorProps) {
  const before = (key.ratelimits ?? []).map(ratelimitDraft);
  return (
    <InlineEditor
      field="ratelimits"
      draft={() => before}
      change={(draft) => {
        if (JSON.stringify(draft) === JSON.stringify(before)) return {};
        const { value, problem } = ratelimitInputs(draft, itemsOf(schema, "ratelimits"));
        return { value: value.length === 0 ? null : value, problem };
      }}
      editor={(draft, set) => <RatelimitsField value={draft} onChange={set} />}
      save={useKeyUpdate(key)("ratelimits")}
      onClose={onClose}
    />
  );
}

export function AddressesEditor({ of: key, onClose }: EditorProps) {
  const { allowedIps = [] } = key;
  return (
    <InlineEditor
      field="allowedIps"
      draft={() => allowedIps as readonly string[]}
      change={(draft) => (draft.join() === allowedIps.join() ? {} : { value: draft.length === 0 ? null : draft })}
      editor={(draft, set) => (
        <TagsField
          label="Allowed addresses"
          description="IPv4 and IPv6 addresses and CIDRs that may use the key. Empty: every address that the API allows."
          value={draft}
          onChange={set}
          placeholder="10.0.0.0/8"
        />
      )}
      save={useKeyUpdate(key)("allowedIps")}
      onClose={onClose}
    />
  );
}

export function RolesEditor({ of: { keyId, roles = [] }, onClose }: EditorProps) {
  return (
    <InlineEditor
      field="roles"
      draft={() => roles as readonly string[]}
      change={(draft) => (draft.join() === roles.join() ? {} : { value: draft })}
      editor={(draft, set) => <RolesField value={draft} onChange={set} />}
      save={async (value) => {
        await call("keys.setRoles", { keyId, roles: value as string[] });
        await refresh();
      }}
      onClose={onClose}
    />
  );
}

/** Of the permissions that the key has itself. */
export function PermissionsEditor({ of: { keyId }, direct, onClose }: EditorProps & { direct: readonly string[] }) {
  return (
    <InlineEditor
      field="permissions"
      draft={() => direct}
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
      onClose={onClose}
    />
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
