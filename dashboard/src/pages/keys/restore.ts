import { call, refresh } from "../../api/client.ts";
import { toast } from "../../ui/overlays/toast.tsx";

/** Brings a deleted key back, and says whether it works again. */
export async function restoreKey(keyId: string, name: string): Promise<void> {
  const { data } = await call("keys.restoreKey", { keyId });
  await refresh();
  toast({ text: data.enabled ? `Restored ${name}.` : `Restored ${name}, which is disabled.` });
}
