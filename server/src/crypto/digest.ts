import { hash } from "node:crypto";

/** 128 bits that stand for a text in an index, 22 characters. Not for secrets. */
export function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 22);
}
