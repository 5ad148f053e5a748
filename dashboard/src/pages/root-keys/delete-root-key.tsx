import type { RootKey } from "@latchkey/sdk";
import { useState } from "react";
import { useCall } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { Switch } from "../../ui/fields/fields.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { useClosePanel } from "../../ui/overlays/panel.tsx";
import { toast } from "../../ui/overlays/toast.tsx";

/** Deletes a root key after its name was typed, with those that it created if that is wanted. */
export function DeleteRootKey({
  of: { rootKeyId, name },
  isOpen,
  onClose,
}: {
  of: RootKey;
  isOpen: boolean;
  onClose: () => void;
}) {
  const [descendants, setDescendants] = useState(false);
  const remove = useCall("rootKeys.deleteRootKey");
  const close = useClosePanel();
  return (
    <ConfirmDialog
      title="Delete the root key"
      action="Delete root key"
      typed={name || rootKeyId}
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={async () => {
        const { data } = await remove.mutateAsync({ rootKeyId, ...(descendants && { descendants }) });
        close();
        toast({ text: `Deleted the root key ${name}.${descendantsText(data)}` });
      }}
    >
      <p>
        Programs that use <strong className="font-medium">{name || rootKeyId}</strong> are refused at once. This cannot
        be undone.
      </p>
      <div className="mt-3">
        <Switch
          label="Delete the root keys that it created too"
          description="After a leak, whoever had it may have created some. Those of this session stay."
          value={descendants}
          onChange={setDescendants}
        />
      </div>
    </ConfirmDialog>
  );
}

interface Descendants {
  readonly deletedDescendants: number;
  readonly livingDescendants: number;
}

/** What became of the root keys that a deleted one created. */
function descendantsText({ deletedDescendants, livingDescendants }: Descendants): string {
  const also = deletedDescendants > 0 ? ` Also ${counted(deletedDescendants, "root key")} that it created.` : "";
  const rest =
    livingDescendants > 0 ? ` Of those that it created, ${counted(livingDescendants, "root key")} still work.` : "";
  return also + rest;
}
