import type { RootKey } from "@latchkey/sdk";
import { useState } from "react";
import { useCall } from "../../api/client.ts";
import { useSession } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { DeleteRootKey } from "./delete-root-key.tsx";
import { EditRootKey, type Made, RotateRootKey } from "./root-key-dialogs.tsx";

/** What can be done with a root key: edit, rotate, disable, delete. */
export function RootKeyActions({ of: rootKey, onMade }: { of: RootKey; onMade: (made: Made) => void }) {
  const { rootKeyId, name, enabled, source } = rootKey;
  const [dialog, setDialog] = useState<"edit" | "rotate" | "delete">();
  const update = useCall("rootKeys.updateRootKey");
  const { rootKey: own } = useSession();
  const isOwn = own.keyId === rootKeyId;
  const fixed = source === "environment" && "It is the root key of the configuration: change it there";
  const setEnabled = (value: boolean) =>
    update.mutate(
      { rootKeyId, enabled: value },
      {
        onSuccess: () =>
          toast({
            text: `${value ? "Enabled" : "Disabled"} the root key ${name}.`,
            undo: () => update.mutateAsync({ rootKeyId, enabled: !value }),
          }),
        onError: toastError,
      },
    );
  return (
    <>
      <Button needs={`rootKeys.${rootKeyId}.update_root_key`} offBecause={fixed} onPress={() => setDialog("edit")}>
        Edit…
      </Button>
      <Button needs={`rootKeys.${rootKeyId}.create_root_key`} offBecause={fixed} onPress={() => setDialog("rotate")}>
        Rotate…
      </Button>
      <Button
        needs={`rootKeys.${rootKeyId}.update_root_key`}
        offBecause={fixed || (isOwn && enabled && "This session uses it")}
        onPress={() => setEnabled(!enabled)}
      >
        {enabled ? "Disable" : "Enable"}
      </Button>
      <Button
        kind="danger"
        needs={`rootKeys.${rootKeyId}.delete_root_key`}
        offBecause={fixed || (isOwn && "This session uses it")}
        onPress={() => setDialog("delete")}
      >
        Delete…
      </Button>
      {dialog === "edit" && <EditRootKey of={rootKey} onClose={() => setDialog(undefined)} />}
      {dialog === "rotate" && <RotateRootKey of={rootKey} onClose={() => setDialog(undefined)} onMade={onMade} />}
      <DeleteRootKey of={rootKey} isOpen={dialog === "delete"} onClose={() => setDialog(undefined)} />
    </>
  );
}
