import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { ExpiryField } from "../../ui/fields/expiry-field.tsx";
import { TagsField, TextField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import type { BulkChange } from "./bulk-change.ts";

const changes = {
  expires: "Set when they expire",
  role: "Add roles",
  permission: "Add permissions",
  credits: "Add credits",
} as const;

/** Asks for a change of many keys. */
export function BulkChangeDialog({
  title,
  onClose,
  onStart,
}: {
  /** `Change 3 keys`. */
  title: string;
  onClose: () => void;
  onStart: (change: BulkChange) => void;
}) {
  const [what, setWhat] = useState<keyof typeof changes>("expires");
  const [expires, setExpires] = useState<number>();
  const [names, setNames] = useState<readonly string[]>([]);
  const [credits, setCredits] = useState("1000");
  const amount = Number(credits);
  const problem =
    what === "credits"
      ? !(Number.isInteger(amount) && amount > 0) && "Enter a whole number above 0"
      : what !== "expires" && names.length === 0 && "Enter at least one";
  const start = () => {
    if (what === "expires") onStart({ expires: expires ?? null });
    else if (what === "role") onStart({ addRoles: names });
    else if (what === "permission") onStart({ addPermissions: names });
    else onStart({ addCredits: amount });
  };
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      onSubmit={start}
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" offBecause={problem}>
            {title}
          </Button>
        </>
      }
    >
      <Select
        label="What"
        value={what}
        onChange={setWhat}
        options={Object.entries(changes).map(([value, label]) => ({ value: value as keyof typeof changes, label }))}
      />
      {what === "expires" && <ExpiryField value={expires} onChange={setExpires} />}
      {what === "role" && (
        <TagsField label="Roles" description="Names of existing roles." value={names} onChange={setNames} />
      )}
      {what === "permission" && (
        <TagsField label="Permissions" description="Slugs. New ones are created." value={names} onChange={setNames} />
      )}
      {what === "credits" && (
        <TextField label="Credits to add to each" type="number" value={credits} onChange={setCredits} />
      )}
    </Dialog>
  );
}
