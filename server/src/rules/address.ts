import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

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

const CIDR = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/;

/** Whether a text is an address, or a CIDR such as `10.0.0.0/8` or `2001:db8::/32`. */
export function isCidr(text: string): boolean {
  const [, address, bits] = CIDR.exec(text) ?? [];
  if (address === undefined || isIP(address) === 0) return false;
  return bits === undefined || Number(bits) <= (isIPv6(address) ? 128 : 32);
}

/** A list to compare addresses with, from addresses and CIDRs that were checked before; null when there are none. */
export function addressList(cidrs: readonly string[]): BlockList | null {
  if (cidrs.length === 0) return null;
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address, bits] = cidr.split("/") as [string, string | undefined];
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}
