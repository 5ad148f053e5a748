import { useState } from "react";
import { Button } from "./button.tsx";
import { type ConfirmProps, Dialog } from "./dialog.tsx";
import { ErrorBox } from "./error-box.tsx";
import { TextField } from "./fields.tsx";

/** An open question before something that cannot be taken back. */
export default function ConfirmWindow({ title, children, action, typed, onClose, onConfirm }: ConfirmProps) {
  const [text, setText] = useState("");
  const [state, setState] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  const confirm = async () => {
    setState({ isPending: true });
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      size="sm"
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button
            kind="danger"
            onPress={confirm}
            isPending={state.isPending}
            offBecause={typed !== undefined && text !== typed && `Type ${typed} first`}
          >
            {action}
          </Button>
        </>
      }
    >
      <div>{children}</div>
      {typed !== undefined && (
        <TextField label={`Type ${typed} to confirm`} value={text} onChange={setText} isMono autoFocus />
      )}
      {state.error !== undefined && <ErrorBox error={state.error} />}
    </Dialog>
  );
}
