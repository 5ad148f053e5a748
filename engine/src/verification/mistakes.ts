import type { KeyRecord } from "../directory/records.ts";
import type { VerificationMistake } from "./request.ts";

/** The mistake of a call that names a limit which neither the key nor its identity has. */
export function unknownLimit(key: KeyRecord, name: string): VerificationMistake {
  const identity = key.identity
    ? `identity ${key.identity.id} (externalId ${key.identity.externalId})`
    : "it has no identity";
  return {
    kind: "limit_unknown",
    message:
      `The ratelimit '${name}' exists neither on key ${key.keyId} nor on its identity: ${identity}. ` +
      "Create it, or send `limit` and `duration` along with its name.",
  };
}
