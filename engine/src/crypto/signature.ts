import { createPublicKey, type KeyObject, verify } from "node:crypto";

/** A public key for ECDSA on the curve P-256. */
export type EcdsaKey = KeyObject;

/** Reads a public key in PEM; undefined if it is none on the curve P-256. */
export function readEcdsaKey(pem: string): EcdsaKey | undefined {
  try {
    const key = createPublicKey(pem);
    const isP256 = key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1";
    return isP256 ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a signature, in DER, is that of the bytes by ECDSA with SHA-256. */
export function hasEcdsaSignature(key: EcdsaKey, bytes: Uint8Array, signature: Uint8Array): boolean {
  return verify("sha256", bytes, { key, dsaEncoding: "der" }, signature);
}
