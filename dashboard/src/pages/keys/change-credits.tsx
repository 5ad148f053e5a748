import { type FormEvent, useState } from "react";
import { refresh } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";

const opposite = { increment: "decrement", decrement: "increment" } as const;

/** Adds credits to a balance, takes some, or sets how many remain. Enter adds. */
export function ChangeCredits({
  remaining,
  update,
  needs,
}: {
  remaining: number;
  update: (operation: "increment" | "decrement" | "set", value: number) => Promise<unknown>;
  needs: string;
}) {
  const [text, setText] = useState("1000");
  const [isPending, setPending] = useState(false);
  const value = Number(text);
  const problem = text !== "" && Number.isSafeInteger(value) && value >= 0 ? undefined : "Enter a whole number";
  const change = async (operation: "increment" | "decrement" | "set", done: string) => {
    if (problem !== undefined || isPending) return;
    setPending(true);
    try {
      await update(operation, value);
      await refresh();
      toast({
        text: done,
        undo: async () => {
          await (operation === "set" ? update("set", remaining) : update(opposite[operation], value));
          await refresh();
        },
      });
    } catch (error) {
      toastError(error);
    } finally {
      setPending(false);
    }
  };
  const add = () => change("increment", `Added ${counted(value, "credit")}.`);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    void add();
  };
  return (
    <form onSubmit={onSubmit} className="flex flex-wrap items-end gap-1.5">
      <div className="w-28">
        <TextField label="Credits" type="number" value={text} onChange={setText} problem={problem} />
      </div>
      <Button type="submit" needs={needs} isPending={isPending} offBecause={problem}>
        Add
      </Button>
      <Button
        needs={needs}
        isPending={isPending}
        offBecause={problem ?? (value > Math.max(0, remaining) && `Only ${exactNumber(Math.max(0, remaining))} remain`)}
        onPress={() => void change("decrement", `Took ${counted(value, "credit")}.`)}
      >
        Take
      </Button>
      <Button
        needs={needs}
        isPending={isPending}
        offBecause={problem ?? (value === remaining && "That many remain")}
        onPress={() => void change("set", `Set the credits to ${exactNumber(value)}.`)}
      >
        Set
      </Button>
    </form>
  );
}
