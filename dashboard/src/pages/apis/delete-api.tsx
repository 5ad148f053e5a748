import type { Api } from "@latchkey/sdk";
import { useNavigate } from "@tanstack/react-router";
import { useCall } from "../../api/client.ts";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";

/** Asks, then deletes an API with its keys. */
export function DeleteApi({
  api: { apiId, name },
  isOpen,
  onClose,
}: {
  api: Api;
  isOpen: boolean;
  onClose: () => void;
}) {
  const remove = useCall("apis.deleteApi");
  const navigate = useNavigate();
  return (
    <ConfirmDialog
      title="Delete the API"
      action="Delete API"
      typed={name}
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={async () => {
        await remove.mutateAsync({ apiId });
        await navigate({ to: "/apis" });
        toast({ text: `Deleted the API ${name} and its keys.` });
      }}
    >
      All keys of <strong className="font-medium">{name}</strong> stop working at once. This cannot be undone.
    </ConfirmDialog>
  );
}
