import type { BlockList } from "node:net";
import { isIPv4, isIPv6 } from "node:net";

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** Whether an address is in a list. IPv4 addresses written as IPv6 count as what they are; nonsense is in no list. */
export function isListed(list: BlockList, address: string): boolean {
  const plain = MAPPED.exec(address)?.[1] ?? address;
  if (isIPv4(plain)) return list.check(plain, "ipv4");
  return isIPv6(plain) && list.check(plain, "ipv6");
}

/**
 * The address of the caller: the nearest one in X-Forwarded-For that no trusted proxy vouches further for, reading from
 * the peer backwards.
 */
export function callerAddress(peer: string, forwardedFor: string | undefined, trusted: BlockList | null): string {
  let address = peer;
  if (trusted === null || forwardedFor === undefined) return address;
  const hops = forwardedFor.split(",");
  while (hops.length > 0 && isListed(trusted, address)) {
    const hop = hops.pop()!.trim();
    if (!isIPv4(hop) && !isIPv6(hop)) break;
    address = hop;
  }
  return address;
}
