import type { Key } from "@latchkey/sdk";
import { type ComponentProps, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { toastError } from "../../ui/overlays/toast.tsx";
import { keyName } from "./key-state.tsx";
import { restoreKey } from "./restore.ts";

/** Brings a deleted key back. */
export function RestoreButton({
  of: key,
  ...look
}: { of: Key } & Pick<ComponentProps<typeof Button>, "kind" | "className">) {
  const [isPending, setPending] = useState(false);
  const name = keyName(key);
  const restore = async () => {
    setPending(true);
    await restoreKey(key.keyId, name).catch(toastError);
    setPending(false);
  };
  return (
    <Button
      {...look}
      needs={`apis.${key.apiId}.restore_key`}
      aria-label={`Restore ${name}`}
      onPress={() => void restore()}
      isPending={isPending}
    >
      Restore
    </Button>
  );
}
