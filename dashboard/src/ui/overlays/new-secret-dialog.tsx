import type { ReactNode } from "react";
import { Button } from "../button.tsx";
import { CopyButton } from "../text/copy-button.tsx";
import { Dialog } from "./dialog.tsx";

/** Shows a secret that was just made, this one time. It leaves the page only by the button at the end. */
export function NewSecretDialog({
  title,
  secret,
  copy,
  about,
  footer,
  children,
  onClose,
}: {
  title: string;
  secret: string;
  /** The text of the button that copies it: `Copy key`. */
  copy: string;
  /** That it is shown once, and what to do with it. */
  about: ReactNode;
  /** What stands beside the button at the end. */
  footer?: ReactNode;
  /** What to do next with it. */
  children?: ReactNode;
  onClose: () => void;
}) {
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      size="lg"
      isDismissable={false}
      footer={
        <>
          {footer}
          <Button kind="primary" onPress={onClose}>
            I have stored it
          </Button>
        </>
      }
    >
      <p>{about}</p>
      <div className="flex flex-wrap items-center gap-3 rounded-md border border-accent/50 bg-accent-soft p-3">
        <code className="min-w-0 flex-1 font-mono text-sm break-all" data-secret>
          {secret}
        </code>
        <CopyButton text={secret} kind="primary">
          {copy}
        </CopyButton>
      </div>
      {children}
    </Dialog>
  );
}
