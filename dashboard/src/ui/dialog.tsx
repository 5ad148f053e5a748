import { X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Button, IconButton } from "./button.tsx";
import { classes } from "./classes.ts";
import { ErrorBox } from "./error-box.tsx";
import { TextField } from "./fields.tsx";

/** A dialog above the page. Escape and a click beside it close it, unless `isDismissable` is false. */
export function Dialog({
  title,
  isOpen,
  onClose,
  children,
  footer,
  size = "md",
  isDismissable = true,
}: {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  size?: "sm" | "md" | "lg";
  isDismissable?: boolean;
}) {
  return (
    <ModalOverlay
      isOpen={isOpen}
      onOpenChange={(open) => !open && onClose()}
      isDismissable={isDismissable}
      isKeyboardDismissDisabled={!isDismissable}
      className="appear fixed inset-0 z-40 flex items-start justify-center overflow-y-auto bg-veil p-3 sm:p-[8vh_1.5rem_1.5rem]"
    >
      <Modal
        className={classes(
          "w-full rounded-lg border border-line bg-raised shadow-over outline-none",
          { sm: "max-w-md", md: "max-w-xl", lg: "max-w-3xl" }[size],
        )}
      >
        <AriaDialog className="flex flex-col outline-none">
          <header className="flex items-center justify-between gap-3 border-b border-line py-2.5 pr-2.5 pl-5">
            <Heading slot="title" className="text-lg font-medium">
              {title}
            </Heading>
            {isDismissable && (
              <IconButton label="Close" onPress={onClose}>
                <X aria-hidden />
              </IconButton>
            )}
          </header>
          <div className="space-y-4 p-5">{children}</div>
          {footer && (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-5 py-3">
              {footer}
            </footer>
          )}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** Asks before something that cannot be taken back. `typed`: the text that must be typed first. */
export function ConfirmDialog({
  title,
  children,
  action,
  typed,
  isOpen,
  onClose,
  onConfirm,
}: {
  title: string;
  children: ReactNode;
  /** The verb on the button, with the object: `Delete 3 keys`. */
  action: string;
  typed?: string;
  isOpen: boolean;
  onClose: () => void;
  onConfirm: () => Promise<unknown>;
}) {
  const [text, setText] = useState("");
  const [state, setState] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  const close = () => {
    setText("");
    setState({ isPending: false });
    onClose();
  };
  const confirm = async () => {
    setState({ isPending: true });
    try {
      await onConfirm();
      close();
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return (
    <Dialog
      title={title}
      isOpen={isOpen}
      onClose={close}
      size="sm"
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
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
      {typed !== undefined && <TextField label={`Type ${typed} to confirm`} value={text} onChange={setText} isMono />}
      {state.error !== undefined && <ErrorBox error={state.error} />}
    </Dialog>
  );
}
