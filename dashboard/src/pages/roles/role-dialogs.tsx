import permissionSchema from "virtual:operation/permissions.createPermission";
import roleSchema from "virtual:operation/permissions.createRole";
import type { Permission, Role } from "@latchkey/sdk";
import { useState } from "react";
import { member, textProblem } from "../../api/schema.ts";
import { TagsField, TextField } from "../../ui/fields/fields.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";

/** Creates a role, or changes the name and the description of one. */
export function RoleDialog({
  of: before,
  slugs,
  onClose,
}: {
  of?: Role | undefined;
  /** Slugs to suggest. */
  slugs: readonly string[];
  onClose: () => void;
}) {
  const [name, setName] = useState(before?.name ?? "");
  const [description, setDescription] = useState(before?.description ?? "");
  const [permissions, setPermissions] = useState<readonly string[]>([]);
  const nameProblem = textProblem(member(roleSchema, "name"), name);
  const slugProblem = slugsProblem(permissions);
  const texts = {
    title: before ? `Edit the role ${before.name}` : "Create role",
    problem: (name === "" ? "Enter a name" : nameProblem) ?? slugProblem,
    onClose,
    onDone: () => {
      onClose();
      toast({ text: before ? `Saved the role ${name}.` : `Created the role ${name}.` });
    },
  };
  const about = description === "" ? {} : { description };
  const call = before
    ? {
        operation: "permissions.updateRole" as const,
        input: { role: before.id, name, description: description || null },
        action: "Save role",
        needs: "permissions.*.update_role",
      }
    : {
        operation: "permissions.createRole" as const,
        input: { name, ...about, ...(permissions.length > 0 && { permissions }) },
        action: "Create role",
        needs: "permissions.*.create_role",
      };
  return (
    <FormDialog {...texts} {...call}>
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        problem={name === "" ? undefined : nameProblem}
        placeholder="editor"
        autoFocus
      />
      <DescriptionField value={description} onChange={setDescription} />
      {!before && (
        <TagsField
          label="Permissions"
          description="Slugs. Those that do not exist yet are created."
          value={permissions}
          onChange={setPermissions}
          problem={slugProblem}
          placeholder="documents.read"
          suggestions={slugs}
        />
      )}
    </FormDialog>
  );
}

/** Creates a permission, or changes one. */
export function PermissionDialog({ of: before, onClose }: { of?: Permission | undefined; onClose: () => void }) {
  const [slug, setSlug] = useState(before?.slug ?? "");
  const [name, setName] = useState(before?.name ?? "");
  const [description, setDescription] = useState(before?.description ?? "");
  const slugProblem = textProblem(member(permissionSchema, "slug"), slug);
  const texts = {
    title: before ? `Edit the permission ${before.slug}` : "Create permission",
    problem: slug === "" ? "Enter a slug" : slugProblem,
    onClose,
    onDone: () => {
      onClose();
      toast({ text: before ? `Saved the permission ${slug}.` : `Created the permission ${slug}.` });
    },
  };
  const about = description === "" ? {} : { description };
  const call = before
    ? {
        operation: "permissions.updatePermission" as const,
        input: { permission: before.id, slug, name: name || slug, description: description || null },
        action: "Save permission",
        needs: "permissions.*.update_permission",
      }
    : {
        operation: "permissions.createPermission" as const,
        input: { slug, name: name || slug, ...about },
        action: "Create permission",
        needs: "permissions.*.create_permission",
      };
  return (
    <FormDialog {...texts} {...call}>
      <TextField
        label="Slug"
        description={
          before && slug !== before.slug
            ? "Keys and roles keep the permission, but queries must use the new slug."
            : "The name that verifications use. A last segment of * stands for all."
        }
        value={slug}
        onChange={setSlug}
        problem={slug === "" ? undefined : slugProblem}
        placeholder="documents.read"
        isMono
        autoFocus
      />
      <TextField label="Name" description="Empty: the slug." value={name} onChange={setName} />
      <DescriptionField value={description} onChange={setDescription} />
    </FormDialog>
  );
}

function DescriptionField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return <TextField label="Description" description="For you. Empty: none." value={value} onChange={onChange} />;
}

function slugsProblem(slugs: readonly string[]): string | undefined {
  const wrong = slugs.find((slug) => textProblem(member(permissionSchema, "slug"), slug) !== undefined);
  return wrong && `${wrong} is not a slug: ${textProblem(member(permissionSchema, "slug"), wrong)}`;
}
