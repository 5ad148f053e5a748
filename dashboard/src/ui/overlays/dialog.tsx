import { lazy, Suspense } from "react";
import { loadCode } from "../../api/connection.ts";
import type { ConfirmProps } from "./confirm-window.tsx";
import type { DialogProps } from "./dialog-window.tsx";

const DialogWindow = lazy(() => loadCode(() => import("./dialog-window.tsx")));
const ConfirmWindow = lazy(() => loadCode(() => import("./confirm-window.tsx")));

/** A dialog above the page. Escape and a click beside it close it, unless `isDismissable` is false. */
export function Dialog({ isOpen, ...window }: DialogProps & { isOpen: boolean }) {
  return <Suspense>{isOpen && <DialogWindow {...window} />}</Suspense>;
}

/** Asks before something that cannot be taken back. */
export function ConfirmDialog({ isOpen, ...question }: ConfirmProps & { isOpen: boolean }) {
  return <Suspense>{isOpen && <ConfirmWindow {...question} />}</Suspense>;
}
