import { X } from "lucide-react";
import { Dialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { IconButton } from "./button.tsx";
import { classes } from "./classes.ts";
import type { DialogProps } from "./dialog.tsx";

/** An open dialog. */
export default function DialogWindow({
  title,
  onClose,
  children,
  footer,
  size = "md",
  isDismissable = true,
}: DialogProps) {
  return (
    <ModalOverlay
      isOpen
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
        <Dialog className="flex flex-col outline-none">
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
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
