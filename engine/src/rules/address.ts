import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** Stands for a caller's address that cannot be parsed. No list contains it. */
export const UNREADABLE_ADDRESS = "";

/** IPv4-mapped IPv6 addresses: with the IPv4 address in decimal, or as two hexadecimal groups. */
const MAPPED_DOTTED = /^(?:::|(?:0{1,4}:){5})ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const MAPPED_HEX = /^(?:::|(?:0{1,4}:){5})ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i;

/** Whether an address is in a list. An IPv4-mapped IPv6 address counts as IPv4. An invalid address is in no list. */
export function isListed(list: BlockList, address: string): boolean {
  if (isIPv4(address)) return list.check(address, "ipv4");
  if (!isIPv6(address)) return false;
  const plain = unmapped(address);
  return plain === undefined ? list.check(address, "ipv6") : list.check(plain, "ipv4");
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether an address is of this machine only. */
export function isLoopback(address: string): boolean {
  return isListed(loopback, address);
}

/** The IPv4 address in an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2). */
function unmapped(address: string): string | undefined {
  const dotted = MAPPED_DOTTED.exec(address)?.[1];
  if (dotted !== undefined) return dotted;
  const [, high, low] = MAPPED_HEX.exec(address) ?? [];
  if (high === undefined || low === undefined) return undefined;
  return [high, low].flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]).join(".");
}

/**
 * The address of the caller: the last address in X-Forwarded-For, read from the peer backwards, that is not a trusted
 * proxy. `UNREADABLE_ADDRESS` if a trusted proxy forwards something that is not an address: the address of the proxy
 * must not be used in its place.
 */
export function callerAddress(peer: string, forwardedFor: string | undefined, trusted: BlockList | null): string {
  let address = peer;
  if (trusted === null || forwardedFor === undefined) return address;
  const hops = forwardedFor.split(",");
  while (hops.length > 0 && isListed(trusted, address)) {
    const hop = hopAddress(hops.pop()!.trim());
    if (hop === undefined) return UNREADABLE_ADDRESS;
    address = hop;
  }
  return address;
}

/**
 * The network of a caller, in canonical spelling: an IPv4 address, or the first 64 bits of an IPv6 address. A caller can
 * choose the other 64 bits freely.
 */
export function addressNetwork(address: string): string {
  if (!isIPv6(address)) return isIPv4(address) ? address : UNREADABLE_ADDRESS;
  const plain = unmapped(address);
  if (plain !== undefined) return plain;
  const [head, tail] = address.replace(/%.*/, "").split("::") as [string, string | undefined];
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const rest = tail === "" ? 0 : tail.split(":").length + (tail.includes(".") ? 1 : 0);
    while (groups.length < 8 - rest) groups.push("0");
    groups.push(...(tail === "" ? [] : tail.split(":")));
  }
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}

/**
 * The block of an address that no longer identifies a person: the first 24 bits of an IPv4 address, the first 48 of an IPv6
 * address. Undefined if it is not an address.
 */
export function addressBlock(address: string): string | undefined {
  const network = addressNetwork(address);
  if (network === UNREADABLE_ADDRESS) return undefined;
  return isIPv4(network)
    ? `${network.slice(0, network.lastIndexOf("."))}.0/24`
    : `${network.split(":").slice(0, 3).join(":")}::/48`;
}

/** An address with or without a port, in the forms of RFC 7239, section 6: `192.0.2.1:80`, `[2001:db8::1]`, `"[2001:db8::1]:443"`. */
const HOP = /^(?:\[([0-9a-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/i;

function hopAddress(hop: string): string | undefined {
  if (isIP(hop) !== 0) return hop;
  const bare = hop.length > 1 && hop.startsWith('"') && hop.endsWith('"') ? hop.slice(1, -1) : hop;
  const [, bracketed, dotted] = HOP.exec(bare) ?? [];
  if (bracketed !== undefined) return isIPv6(bracketed) ? bracketed : undefined;
  const plain = dotted ?? bare;
  return isIP(plain) === 0 ? undefined : plain;
}

const CIDR = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/;

/** Whether a text is an address or a CIDR block such as `10.0.0.0/8` or `2001:db8::/32`. */
export function isCidr(text: string): boolean {
  const [, address, bits] = CIDR.exec(text) ?? [];
  if (address === undefined || isIP(address) === 0) return false;
  return bits === undefined || Number(bits) <= (isIPv6(address) ? 128 : 32);
}

/** A list of addresses and CIDR blocks, which must be valid; null for an empty list. */
export function addressList(cidrs: readonly string[]): BlockList | null {
  if (cidrs.length === 0) return null;
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address, bits] = cidr.split("/") as [string, string | undefined];
    const plain = isIPv6(address) ? unmapped(address) : undefined;
    // The first 96 bits mark a mapped address. A shorter block is an IPv6 block.
    if (plain !== undefined && (bits === undefined || Number(bits) >= 96)) {
      list.addSubnet(plain, bits === undefined ? 32 : Number(bits) - 96, "ipv4");
      continue;
    }
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}
