import type { Key, Secret } from "@latchkey/sdk";
import { useNavigate } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useState } from "react";
import { call, latchkey, refresh } from "../../api/client.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Code } from "../../ui/code-snippet.tsx";
import { ConfirmDialog, Dialog } from "../../ui/dialog.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Select } from "../../ui/fields.tsx";
import { Menu, MenuItem, MenuLine } from "../../ui/menu.tsx";
import { toast, toastError } from "../../ui/toast.tsx";
import { CreatedKey } from "./created-key.tsx";
import { keyName } from "./key-state.tsx";

/** What can be done with a key as a whole: disable, rotate, show its secret, delete. */
export function KeyActions({ of: key, onDeleted }: { of: Key; onDeleted?: () => void }) {
  const { apiId, keyId, enabled } = key;
  const [dialog, setDialog] = useState<"rotate" | "delete" | "secret">();
  const name = keyName(key);
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
      <Menu
        label="More"
        trigger={
          <IconButton label="More about this key" kind="plain">
            <Ellipsis aria-hidden />
          </IconButton>
        }
      >
        <MenuItem needs={`apis.${apiId}.decrypt_key`} onAction={() => setDialog("secret")}>
          Show the key string
        </MenuItem>
        <MenuLine />
        <MenuItem danger needs={`apis.${apiId}.delete_key`} onAction={() => setDialog("delete")}>
          Delete…
        </MenuItem>
      </Menu>
      {dialog === "rotate" && <RotateDialog of={key} onClose={() => setDialog(undefined)} />}
      {dialog === "secret" && <SecretDialog of={key} onClose={() => setDialog(undefined)} />}
      <ConfirmDialog
        title={`Delete ${name}`}
        action="Delete key"
        isOpen={dialog === "delete"}
        onClose={() => setDialog(undefined)}
        onConfirm={async () => {
          await latchkey.keys.deleteKey({ keyId });
          onDeleted?.();
          await refresh();
          toast({ text: `Deleted ${name}.` });
        }}
      >
        The next request with this key is rejected. This cannot be undone: to stop it for a while, disable it.
      </ConfirmDialog>
    </>
  );
}

const overlaps = [
  { value: "0", label: "At once" },
  { value: "3600000", label: "After an hour" },
  { value: "86400000", label: "After a day" },
  { value: "604800000", label: "After 7 days" },
  { value: "2592000000", label: "After 30 days" },
  { value: "null", label: "Not because of this: its expiry does not change" },
] as const;

function RotateDialog({ of: key, onClose }: { of: Key; onClose: () => void }) {
  const { apiId, keyId } = key;
  const navigate = useNavigate();
  const [overlap, setOverlap] = useState<(typeof overlaps)[number]["value"]>("86400000");
  const [state, setState] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  const [created, setCreated] = useState<{ keyId: string; secret: Secret }>();
  if (created) {
    return (
      <CreatedKey
        apiId={apiId}
        {...created}
        title="New key of the rotation"
        onClose={() => {
          onClose();
          void navigate({ to: "/apis/$apiId/keys/$keyId", params: { apiId, keyId: created.keyId } });
        }}
      />
    );
  }
  const rotate = async () => {
    setState({ isPending: true });
    try {
      const { data } = await call("keys.rerollKey", { keyId, expiration: overlap === "null" ? null : Number(overlap) });
      setCreated({ keyId: data.keyId, secret: data.key });
      await refresh();
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return (
    <Dialog
      title={`Rotate ${keyName(key)}`}
      isOpen
      onClose={onClose}
      size="sm"
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" onPress={() => void rotate()} isPending={state.isPending}>
            Rotate key
          </Button>
        </>
      }
    >
      <p>
        A new key with the same name, owner, access, limits and credits is created. Both work until the old one stops,
        so its user can change over without a gap.
      </p>
      <Select label="The old key stops" value={overlap} onChange={setOverlap} options={overlaps} />
      {state.error !== undefined && <ErrorBox error={state.error} />}
    </Dialog>
  );
}

function SecretDialog({ of: key, onClose }: { of: Key; onClose: () => void }) {
  const [state, setState] = useState<{ text?: string; error?: unknown; isMissing?: boolean; isPending?: boolean }>({});
  // The key string is read when it is asked for, and forgotten with the dialog.
  const show = async () => {
    setState({ isPending: true });
    try {
      const { data } = await latchkey.keys.getKey({ keyId: key.keyId, decrypt: true });
      setState(data.plaintext ? { text: data.plaintext.reveal() } : { isMissing: true });
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <Dialog
      title={`The key string of ${keyName(key)}`}
      isOpen
      onClose={onClose}
      size="sm"
      footer={<Button onPress={onClose}>Close</Button>}
    >
      {state.text !== undefined ? (
        <Code text={state.text} label="Copy the key" />
      ) : state.isMissing ? (
        <p>This key is not recoverable: the service keeps a hash of it. Rotate it to get a new one.</p>
      ) : (
        <>
          <p>Everybody who sees the key string can use it. The audit log records that it was shown.</p>
          <Button onPress={() => void show()} isPending={state.isPending ?? false}>
            Show it
          </Button>
        </>
      )}
      {state.error !== undefined && <ErrorBox error={state.error} />}
    </Dialog>
  );
}
