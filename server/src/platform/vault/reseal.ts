import { seal, unseal } from "../../../../engine/src/crypto/seal.ts";
import type { KeyRing } from "./key-ring.ts";
import { dataKeyContext, MasterKeyMissing } from "./vault.ts";

/** A workspace's data key, as it is stored. */
export interface SealedDataKey {
  readonly workspaceId: string;
  readonly fingerprint: string;
  readonly sealed: string;
}

/**
 * Opens a data key.
 *
 * @throws {MasterKeyMissing} when the ring does not have its master key.
 */
export function openDataKey(ring: KeyRing, { workspaceId, fingerprint, sealed }: SealedDataKey): Buffer {
  const master = ring.find(fingerprint);
  if (!master) throw new MasterKeyMissing();
  return unseal(master, dataKeyContext(workspaceId), sealed);
}

/** Seals a data key under the first master key of the ring. */
export function resealDataKey(from: KeyRing, to: KeyRing, dataKey: SealedDataKey): SealedDataKey {
  const { workspaceId } = dataKey;
  const fingerprint = to.first()!;
  const sealed = seal(to.find(fingerprint)!, dataKeyContext(workspaceId), openDataKey(from, dataKey));
  return { workspaceId, fingerprint, sealed };
}
