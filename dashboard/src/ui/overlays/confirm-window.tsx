import { type ReactNode, useState } from "react";
import { Button } from "../button.tsx";
import { TextField } from "../fields/fields.tsx";
import { ErrorBox } from "../text/error-box.tsx";
import DialogWindow from "./dialog-window.tsx";

export interface ConfirmProps {
  title: string;
  children: ReactNode;
  /** The verb on the button, with the object: `Delete 3 keys`. */
  action: string;
  /** The text that must be typed first. */
  typed?: string;
  onClose: () => void;
  onConfirm: () => Promise<unknown>;
}

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
    <DialogWindow
      title={title}
      onClose={onClose}
      onSubmit={typed === undefined ? undefined : () => void confirm()}
      isQuestion
      size="sm"
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button
            kind="danger"
            {...(typed === undefined ? { onPress: () => void confirm() } : { type: "submit" })}
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
    </DialogWindow>
  );
}
