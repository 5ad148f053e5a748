import type { Key, Secret } from "@latchkey/sdk";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call, latchkey, refresh } from "../../api/client.ts";
import { Button } from "../../ui/button.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { CreatedKey } from "./created-key.tsx";
import { keyName } from "./key-state.tsx";

const overlaps = [
  { value: "0", label: "At once" },
  { value: "3600000", label: "After an hour" },
  { value: "86400000", label: "After a day" },
  { value: "604800000", label: "After 7 days" },
  { value: "2592000000", label: "After 30 days" },
  { value: "null", label: "Not because of this: its expiry does not change" },
] as const;

/** Asks how long the old key works, then rotates it and shows the new one once. */
export function RotateDialog({ of: key, onClose }: { of: Key; onClose: () => void }) {
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
      onSubmit={() => void rotate()}
      size="sm"
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isPending={state.isPending}>
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

/** Shows the key string of a recoverable key when it is asked for. */
export function SecretDialog({ of: key, onClose }: { of: Key; onClose: () => void }) {
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
