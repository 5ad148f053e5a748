import type { Key } from "@latchkey/sdk";
import { lazyRouteComponent } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { call, latchkey, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { keyName } from "./key-state.tsx";
import { restoreKey } from "./restore.ts";

const RotateDialog = lazyRouteComponent(() => loadCode(() => import("./key-dialogs.tsx")), "RotateDialog");
const CreateSession = lazyRouteComponent(() => loadCode(() => import("../portal/create-session.tsx")), "CreateSession");
const SecretDialog = lazyRouteComponent(() => loadCode(() => import("./key-dialogs.tsx")), "SecretDialog");

/** What can be done with a key as a whole: disable, rotate, show its secret, delete. */
export function KeyActions({ of: key, onDeleted }: { of: Key; onDeleted?: () => void }) {
  const { apiId, keyId, enabled, identity } = key;
  const [dialog, setDialog] = useState<"rotate" | "delete" | "secret" | "portal">();
  const name = keyName(key);
  const canRestore = useCan()(`apis.${apiId}.restore_key`);
  const setEnabled = async (enabled: boolean) => {
    try {
      await call("keys.updateKey", { keyId, enabled });
      await refresh();
      toast({
        text: `${name} is ${enabled ? "enabled" : "disabled"}.`,
        undo: async () => {
          await call("keys.updateKey", { keyId, enabled: !enabled });
          await refresh();
        },
      });
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <>
      <Button needs={`apis.${apiId}.update_key`} onPress={() => void setEnabled(!enabled)}>
        {enabled ? "Disable" : "Enable"}
      </Button>
      <Button needs={`apis.${apiId}.create_key`} onPress={() => setDialog("rotate")}>
        Rotate…
      </Button>
      <MoreMenu
        label="More about this key"
        entries={[
          { label: "Show the key string", needs: `apis.${apiId}.decrypt_key`, onAction: () => setDialog("secret") },
          ...(identity
            ? [
                {
                  label: `Portal session of ${identity.externalId}…`,
                  needs: `apis.${apiId}.create_portal_session`,
                  onAction: () => setDialog("portal"),
                },
              ]
            : []),
          "line",
          { label: "Delete…", isDanger: true, needs: `apis.${apiId}.delete_key`, onAction: () => setDialog("delete") },
        ]}
      />
      <Suspense>
        {dialog === "rotate" && <RotateDialog of={key} onClose={() => setDialog(undefined)} />}
        {identity && dialog === "portal" && (
          <CreateSession apiId={apiId} externalId={identity.externalId} onClose={() => setDialog(undefined)} />
        )}
        {dialog === "secret" && <SecretDialog of={key} onClose={() => setDialog(undefined)} />}
      </Suspense>
      <ConfirmDialog
        title={`Delete ${name}`}
        action="Delete key"
        typed={name}
        isOpen={dialog === "delete"}
        onClose={() => setDialog(undefined)}
        onConfirm={async () => {
          await latchkey.keys.deleteKey({ keyId });
          onDeleted?.();
          await refresh();
          toast({
            text: `Deleted ${name}.`,
            ...(canRestore && { undo: () => restoreKey(keyId, name) }),
          });
        }}
      >
        The next request with this key is rejected. It can be restored until the service erases it, after 90 days unless
        it is set otherwise. To stop it for a while, disable it.
      </ConfirmDialog>
    </>
  );
}
