import { z } from "zod";
import { feedPositionPattern } from "../../../../engine/src/directory/changes-feed.ts";
import type { MeteredContext } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { text } from "../../platform/vocabulary/schema.ts";

/** The longest body of an edge. A report of two thousand counts with tags takes most of it. */
export const EDGE_BODY_BYTES_MAX = 1024 * 1024;

/** The permission that opens the keys of an API for edges. */
export const OPEN_PERMISSION = "replicas.{apiId}.open";

export function openRequirement(apiId: string): string {
  return `replicas.${apiId}.open`;
}

/** The caller of an operation of edges. @throws {Problem} unless its root key opens the keys of some API. */
export function openingCaller({ principal }: Pick<MeteredContext<never>, "principal">): Principal {
  if (principal === null) throw new Problem("authentication_missing");
  principal.authorizeSome([OPEN_PERMISSION]);
  return principal;
}

export const Position = text(1, 160, { regex: feedPositionPattern, says: "must be a position of replica.listChanges" });

/** The address of a caller of an edge. */
export const CallerAddress = z.union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or an IPv6 address" });

/** SHA-256 or SHA-512 of a string as base64url. */
export const Hash = text(43, 86, {
  regex: /^(?:[\w-]{43}|[\w-]{86})$/,
  says: "must be a SHA-256 or a SHA-512 as base64url",
});

/** The root key of a caller of an edge, for calls that wait. */
export const CallerRootKey = Hash.optional().describe(
  "The hash of the root key of the caller, which must be valid too. Omitted: the caller has none, or is the edge.",
);

/** What an edge must pass on, with everything that it concerns. */
export const Elsewhere = z.strictObject({ isElsewhere: z.literal(true) });
