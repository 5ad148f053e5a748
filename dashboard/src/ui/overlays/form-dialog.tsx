import type { ReactNode } from "react";
import { type Answer, type Input, type OperationName, useCall } from "../../api/client.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button, type Needs } from "../button.tsx";
import { CopyButton } from "../text/copy-button.tsx";
import { Dialog } from "./dialog.tsx";

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
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      onSubmit={submit}
      error={send.error}
      size={size}
      footer={
        <>
          <span className="mr-auto max-sm:w-full">
            <CopyButton kind="quiet" text={() => snippetsOf(operation, copied).curl}>
              Copy as curl
            </CopyButton>
          </span>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" needs={needs} isPending={send.isPending} offBecause={problem}>
            {action}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
