import { X } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { Dialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Button, IconButton } from "../button.tsx";
import { classes } from "../classes.ts";
import { ErrorBox } from "../text/error-box.tsx";
import { useUnsaved } from "../unsaved.ts";

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  size?: "sm" | "md" | "lg";
  isDismissable?: boolean;
  /**
   * Makes the dialog a form: Enter in a field sends it, and so does the button of the type `submit` in the footer. What was
   * entered is not lost by a click beside it, and Escape asks first.
   */
  onSubmit?: (() => void) | undefined;
  /** Whether it only asks: what was typed to confirm may be lost. */
  isQuestion?: boolean;
  /** Why it could not be sent; above the buttons, so that it is in view. */
  error?: unknown;
}

const body = "min-h-0 flex-1 space-y-4 overflow-y-auto p-5";
const foot = "flex shrink-0 flex-wrap items-center justify-end gap-2 border-t border-line px-5 py-3";

/** An open dialog. It is at most as high as the window: what it contains scrolls between its title and its buttons. */
export default function DialogWindow({
  title,
  onClose,
  children,
  footer,
  size = "md",
  isDismissable = true,
  onSubmit,
  isQuestion = false,
  error,
}: DialogProps) {
  const [isChanged, setChanged] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  useUnsaved(isChanged || Boolean(error));
  const leave = () => (isChanged && !isLeaving ? setLeaving(true) : onClose());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // React passes on the events of a dialog that this one opened.
    event.stopPropagation();
    // A button that is off is none of the form: then Enter in its only field would send it.
    if (!(event.nativeEvent as SubmitEvent).submitter) return;
    setChanged(false);
    onSubmit?.();
  };
  const buttons = isLeaving ? (
    <>
      <p role="alert" className="mr-auto">
        Discard what you entered?
      </p>
      <Button onPress={() => setLeaving(false)} autoFocus>
        Keep editing
      </Button>
      <Button kind="danger" onPress={onClose}>
        Discard
      </Button>
    </>
  ) : (
    footer
  );
  return (
    <ModalOverlay
      isOpen
      onOpenChange={(open) => !open && leave()}
      isDismissable={isDismissable}
      isKeyboardDismissDisabled={!isDismissable}
      shouldCloseOnInteractOutside={() => onSubmit === undefined}
      className="appear fixed inset-0 z-40 flex items-start justify-center bg-veil p-3 sm:p-[min(8vh,4rem)_1.5rem_1.5rem]"
    >
      <Modal
        className={classes(
          "flex max-h-full w-full flex-col rounded-lg border border-line bg-raised shadow-over outline-none",
          { sm: "max-w-md", md: "max-w-xl", lg: "max-w-3xl" }[size],
        )}
      >
        <Dialog className="flex min-h-0 flex-col outline-none">
          <header className="flex shrink-0 items-center justify-between gap-3 border-b border-line py-2.5 pr-2.5 pl-5">
            <Heading slot="title" className="text-lg font-medium">
              {title}
            </Heading>
            {isDismissable && (
              <IconButton label="Close" onPress={leave}>
                <X aria-hidden />
              </IconButton>
            )}
          </header>
          {onSubmit ? (
            <form onSubmit={submit} onInput={() => setChanged(!isQuestion)} className="flex min-h-0 flex-col">
              <div className={body}>{children}</div>
              {Boolean(error) && (
                <div className="shrink-0 px-5 pb-4">
                  <ErrorBox error={error} />
                </div>
              )}
              <footer className={foot}>{buttons}</footer>
            </form>
          ) : (
            <>
              <div className={body}>{children}</div>
              {footer && <footer className={foot}>{footer}</footer>}
            </>
          )}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
