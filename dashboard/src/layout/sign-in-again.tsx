import { useState } from "react";
import { renewSession } from "../api/session.ts";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/fields/fields.tsx";
import DialogWindow from "../ui/overlays/dialog-window.tsx";

/** Signs in over the page after the session has ended, so that what was entered there stays. */
export default function SignInAgain({ onDone }: { onDone: () => void }) {
  const [rootKey, setRootKey] = useState("");
  const [state, setState] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  const enter = async () => {
    setState({ isPending: true });
    try {
      await renewSession({ rootKey: rootKey.trim() });
      onDone();
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return (
    <DialogWindow
      title="Your session has ended"
      size="sm"
      isDismissable={false}
      onClose={onDone}
      onSubmit={() => void enter()}
      error={state.error}
      footer={
        <>
          <a href="/sign-in" className="link mr-auto">
            Leave this page
          </a>
          <Button
            kind="primary"
            type="submit"
            isPending={state.isPending}
            offBecause={rootKey.trim() === "" && "Enter a root key"}
          >
            Sign in
          </Button>
        </>
      }
    >
      <p>Sign in to go on. What you entered on this page stays.</p>
      <TextField label="Root key" type="password" value={rootKey} onChange={setRootKey} isMono autoFocus />
    </DialogWindow>
  );
}
