import { lazy, type ReactNode, Suspense } from "react";

const DialogWindow = lazy(() => import("./dialog-window.tsx"));
const ConfirmWindow = lazy(() => import("./confirm-window.tsx"));

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  size?: "sm" | "md" | "lg";
  isDismissable?: boolean;
}

/** A dialog above the page. Escape and a click beside it close it, unless `isDismissable` is false. */
export function Dialog({ isOpen, ...window }: DialogProps & { isOpen: boolean }) {
  return <Suspense>{isOpen && <DialogWindow {...window} />}</Suspense>;
}

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

/** Asks before something that cannot be taken back. */
export function ConfirmDialog({ isOpen, ...question }: ConfirmProps & { isOpen: boolean }) {
  return <Suspense>{isOpen && <ConfirmWindow {...question} />}</Suspense>;
}
