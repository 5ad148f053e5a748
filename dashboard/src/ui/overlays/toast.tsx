import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { explain } from "../../api/explain.ts";
import { Button, IconButton } from "../button.tsx";
import { TextWithCode } from "../text/text-with-code.tsx";

/** A message at the edge of the page. */
export interface Message {
  readonly text: string;
  readonly kind?: "done" | "error";
  /** Takes back what was done. */
  readonly undo?: () => Promise<unknown>;
}

interface VisibleMessage extends Message {
  readonly id: number;
}

const MESSAGES_MAX = 4;
const DURATION_MS = 6_000;

let shown: readonly VisibleMessage[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

/** Shows a message for some seconds; an error stays until it is closed. */
export function toast(message: Message): void {
  const id = ++lastId;
  show([...shown, { ...message, id }].slice(-MESSAGES_MAX));
  if (message.kind !== "error") setTimeout(() => remove(id), message.undo ? 2 * DURATION_MS : DURATION_MS);
}

/** Shows why something failed. */
export function toastError(error: unknown): void {
  const { title, detail } = explain(error);
  toast({ text: `${title}. ${detail}`, kind: "error" });
}

function remove(id: number): void {
  show(shown.filter((message) => message.id !== id));
}

function show(messages: readonly VisibleMessage[]): void {
  shown = messages;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Where the messages appear. */
export function Toasts() {
  const messages = useSyncExternalStore(subscribe, () => shown);
  return (
    <div
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed inset-x-0 bottom-0 z-50 flex flex-col items-center gap-2 p-4"
    >
      {messages.map((message) => (
        <div
          key={message.id}
          className="appear pointer-events-auto flex max-w-lg items-center gap-2 rounded-lg border border-line bg-raised py-1.5 pr-1.5 pl-3 shadow-over"
        >
          {message.kind === "error" ? (
            <CircleAlert aria-hidden className="size-4 shrink-0 text-bad" />
          ) : (
            <CircleCheck aria-hidden className="size-4 shrink-0 text-good" />
          )}
          {message.kind === "error" ? (
            <p className="py-1 text-bad">
              <TextWithCode text={message.text} />
            </p>
          ) : (
            <p className="py-1">{message.text}</p>
          )}
          {message.undo && (
            <Button
              kind="quiet"
              onPress={() => {
                remove(message.id);
                message.undo?.().catch(toastError);
              }}
            >
              Undo
            </Button>
          )}
          <IconButton label="Close" onPress={() => remove(message.id)}>
            <X aria-hidden />
          </IconButton>
        </div>
      ))}
    </div>
  );
}
