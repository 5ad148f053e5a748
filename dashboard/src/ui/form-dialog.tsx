import type { FormEvent, ReactNode } from "react";
import { type Answer, type Input, type OperationName, useCall } from "../api/client.ts";
import { snippetsOf } from "../api/snippets.ts";
import { Button, type Needs } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorBox } from "./error-box.tsx";

/** A dialog whose fields are the input of one operation, which can be copied as a call. Enter sends it. */
export function FormDialog<Name extends OperationName>({
  title,
  operation,
  input,
  copied = input,
  problem,
  action,
  needs,
  size = "md",
  onClose,
  onDone,
  children,
}: {
  title: string;
  operation: Name;
  input: Input<Name>;
  /** The input as it is copied, if it has secrets. */
  copied?: Input<Name>;
  /** Why the input cannot be sent. */
  problem?: string | false | undefined;
  /** The verb on the button, with the object. */
  action: string;
  /** The permissions that the operation needs. */
  needs?: Needs;
  size?: "sm" | "md" | "lg";
  onClose: () => void;
  onDone: (answer: Answer<Name>) => void;
  children: ReactNode;
}) {
  const send = useCall(operation);
  const submit = () => {
    if (problem || send.isPending) return;
    send.mutate(input, { onSuccess: onDone });
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    submit();
  };
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      size={size}
      footer={
        <>
          <span className="mr-auto max-sm:w-full">
            <CopyButton kind="quiet" text={() => snippetsOf(operation, copied).curl}>
              Copy as curl
            </CopyButton>
          </span>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" needs={needs} onPress={submit} isPending={send.isPending} offBecause={problem}>
            {action}
          </Button>
        </>
      }
    >
      <form onSubmit={onSubmit} className="space-y-4">
        {children}
        {/* Enter in a field sends a form that has a button of this type. */}
        <button type="submit" className="hidden" tabIndex={-1} aria-hidden="true" />
      </form>
      {send.error && <ErrorBox error={send.error} />}
    </Dialog>
  );
}
