import createSchema from "virtual:operation/rootKeys.createRootKey";
import updateSchema from "virtual:operation/rootKeys.updateRootKey";
import type { RootKey, Secret } from "@latchkey/sdk";
import { useState } from "react";
import { localTime } from "../../api/format.ts";
import { member, textProblem } from "../../api/schema.ts";
import { ExpiryField } from "../../ui/fields/expiry-field.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { OVERLAP, OverlapField } from "../../ui/fields/overlap-field.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { NewSecretDialog } from "../../ui/overlays/new-secret-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { PermissionPicker, permissionsProblem } from "./permission-picker.tsx";

/** A root key that was just made, with its secret. */
export interface Made {
  readonly title: string;
  readonly secret: Secret;
}

/** Creates a root key. */
export function CreateRootKey({ onClose, onMade }: { onClose: () => void; onMade: (made: Made) => void }) {
  const [name, setName] = useState("");
  const [permissions, setPermissions] = useState<readonly string[]>([]);
  const [expires, setExpires] = useState<number>();
  const nameProblem = textProblem(member(createSchema, "name"), name);
  const listProblem = permissionsProblem(permissions, member(createSchema, "permissions"));
  return (
    <FormDialog
      title="Create root key"
      operation="rootKeys.createRootKey"
      input={{ name, permissions, ...(expires !== undefined && { expires }) }}
      problem={(name === "" ? "Enter a name" : nameProblem) ?? listProblem ?? pastProblem(expires)}
      action="Create root key"
      needs="rootKeys.*.create_root_key"
      size="lg"
      onClose={onClose}
      onDone={({ data: { key } }) => {
        onClose();
        onMade({ title: `The root key ${name}`, secret: key });
      }}
    >
      <TextField
        label="Name"
        description={member(createSchema, "name").description}
        value={name}
        onChange={setName}
        problem={name === "" ? undefined : nameProblem}
        placeholder="payments backend"
        autoFocus
      />
      <PermissionPicker value={permissions} onChange={setPermissions} problem={listProblem} />
      <ExpiryField value={expires} onChange={setExpires} />
    </FormDialog>
  );
}

/** Changes the name, the permissions and the expiry of a root key. */
export function EditRootKey({ of: before, onClose }: { of: RootKey; onClose: () => void }) {
  const { rootKeyId } = before;
  const [name, setName] = useState(before.name);
  const [permissions, setPermissions] = useState<readonly string[]>(before.permissions);
  const [expires, setExpires] = useState(before.expires);
  const [leakAction, setLeakAction] = useState(before.leakAction ?? "mark");
  const nameProblem = textProblem(member(updateSchema, "name"), name);
  const listProblem = permissionsProblem(permissions, member(updateSchema, "permissions"));
  const changes = {
    ...(name !== before.name && { name }),
    ...(permissions.join(" ") !== before.permissions.join(" ") && { permissions }),
    ...(expires !== before.expires && { expires: expires ?? null }),
    ...(leakAction !== (before.leakAction ?? "mark") && { leakAction }),
  };
  return (
    <FormDialog
      title={`Edit ${before.name || rootKeyId}`}
      operation="rootKeys.updateRootKey"
      input={{ rootKeyId, ...changes }}
      problem={
        nameProblem ??
        listProblem ??
        (changes.expires === undefined ? undefined : pastProblem(expires)) ??
        (Object.keys(changes).length === 0 && "Nothing has changed")
      }
      action="Save root key"
      needs={`rootKeys.${rootKeyId}.update_root_key`}
      size="lg"
      onClose={onClose}
      onDone={() => {
        onClose();
        toast({ text: `Saved the root key ${name}.` });
      }}
    >
      <TextField label="Name" value={name} onChange={setName} problem={nameProblem} autoFocus />
      <PermissionPicker value={permissions} onChange={setPermissions} problem={listProblem} />
      <ExpiryField value={expires} onChange={setExpires} />
      <Select
        label="If it is reported as leaked"
        value={leakAction}
        onChange={setLeakAction}
        options={[
          { value: "mark", label: "Mark it as leaked" },
          { value: "disable", label: "Mark and disable it" },
        ]}
      />
    </FormDialog>
  );
}

/** Makes a new root key in the place of another, which stays valid for a while. */
export function RotateRootKey({
  of: { rootKeyId, name },
  onClose,
  onMade,
}: {
  of: RootKey;
  onClose: () => void;
  onMade: (made: Made) => void;
}) {
  const [expiration, setExpiration] = useState(OVERLAP);
  const [now] = useState(Date.now);
  return (
    <FormDialog
      title={`Rotate ${name || rootKeyId}`}
      operation="rootKeys.rerollRootKey"
      input={{ rootKeyId, expiration }}
      action="Rotate root key"
      needs={`rootKeys.${rootKeyId}.create_root_key`}
      size="sm"
      onClose={onClose}
      onDone={({ data: { key } }) => {
        onClose();
        onMade({ title: `The new root key of ${name}`, secret: key });
      }}
    >
      <p>
        A new root key with the same permissions is made.{" "}
        {expiration === 0
          ? "The old one stops working at once, and sessions with it end."
          : `The old one works until ${localTime(now + expiration)}.`}
      </p>
      <OverlapField label="The old root key works for another" value={expiration} onChange={setExpiration} />
    </FormDialog>
  );
}

/** Shows the secret of a root key, this one time. */
export function MadeRootKey({ of: { title, secret }, onClose }: { of: Made; onClose: () => void }) {
  const text = secret.reveal();
  return (
    <NewSecretDialog
      title={title}
      secret={text}
      copy="Copy root key"
      about="This is the only time that the root key is shown: the service keeps a hash of it. Put it into the secret store of the program that uses it."
      onClose={onClose}
    >
      <div>
        <p className="label mb-1">The clients read it from the environment</p>
        <Code text={`LATCHKEY_ROOT_KEY=${text}`} label="Copy the variable" />
      </div>
    </NewSecretDialog>
  );
}

function pastProblem(expires: number | undefined): string | undefined {
  return expires !== undefined && expires <= Date.now() ? "The expiry is in the past" : undefined;
}
