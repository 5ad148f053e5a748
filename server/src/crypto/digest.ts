import { hash } from "node:crypto";

/** A digest of 128 bits for indexes, 22 characters. Not for secrets. */
export function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 22);
}
