import { isIP, isIPv4, isIPv6 } from "node:net";

/** Stands for a caller's address that cannot be parsed. No list contains it. */
export const UNREADABLE_ADDRESS = "";

/** A range of addresses. An address is its 128 bits; an IPv4 address is IPv4-mapped (RFC 4291, section 2.5.5.2). */
interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * Ranges of addresses, in order and without overlaps. One of Node's `BlockList` takes 7,600 bytes outside of the heap with a
 * single block.
 */
export type AddressList = readonly AddressRange[];

/** Estimated memory in bytes: of a list, and of each of its blocks. */
const LIST_BYTES = 200;
const BLOCK_BYTES = 100;

const MAPPED = 0xffffn << 32n;

/** Whether an address is in a list. An IPv4-mapped IPv6 address counts as IPv4. An invalid address is in no list. */
export function isListed(list: AddressList, address: string): boolean {
  if (isIP(address) === 0) return false;
  const bits = bitsOf(address);
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const range = list[middle];
    if (range === undefined || bits < range.first) high = middle;
    else if (bits > range.last) low = middle + 1;
    else return true;
  }
  return false;
}

/** The addresses that may use a key. Null: every address. */
export interface AllowedAddresses {
  readonly ofApi: AddressList | null;
  readonly ofKey: AddressList | null;
  /** Of a derived key: its own, and those of its parents that are derived keys. Absent: they have none. */
  readonly ofDerived?: readonly AddressList[];
}

/** Whether an address is in the list of the API, in that of the key and in those of derived keys. */
export function isAllowed({ ofApi, ofKey, ofDerived }: AllowedAddresses, address: string): boolean {
  return (
    (ofApi === null || isListed(ofApi, address)) &&
    (ofKey === null || isListed(ofKey, address)) &&
    (ofDerived === undefined || ofDerived.every((list) => isListed(list, address)))
  );
}

/** The estimated memory of a list, in bytes. */
export function addressListBytes(list: AddressList | null): number {
  return LIST_BYTES + BLOCK_BYTES * (list?.length ?? 0);
}

/** Whether an address is of this machine only. */
export function isLoopback(address: string): boolean {
  return isListed(loopback, address);
}

/** The bits of an address, which must be valid. */
function bitsOf(address: string): bigint {
  return isIPv4(address) ? MAPPED + BigInt(ipv4Bits(address)) : BigInt(`0x${ipv6Digits(address)}`);
}

function ipv4Bits(address: string): number {
  return address.split(".").reduce((bits, octet) => bits * 256 + Number(octet), 0);
}

/** The 32 hexadecimal digits of an IPv6 address, without its zone. */
function ipv6Digits(address: string): string {
  const [head, tail] = address.replace(/%.*/, "").split("::") as [string, string | undefined];
  const first = groupDigits(head);
  const last = groupDigits(tail ?? "");
  return first + "0".repeat(32 - first.length - last.length) + last;
}

function groupDigits(groups: string): string {
  let digits = "";
  for (const group of groups === "" ? [] : groups.split(":")) {
    digits += group.includes(".") ? ipv4Bits(group).toString(16).padStart(8, "0") : group.padStart(4, "0");
  }
  return digits;
}

/**
 * The address of the caller: the last address in X-Forwarded-For, read from the peer backwards, that is not a trusted
 * proxy. `UNREADABLE_ADDRESS` if a trusted proxy forwards something that is not an address: the address of the proxy
 * must not be used in its place.
 */
export function callerAddress(peer: string, forwardedFor: string | undefined, trusted: AddressList | null): string {
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
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return UNREADABLE_ADDRESS;
  const digits = ipv6Digits(address);
  const groups = [0, 4, 8, 12].map((at) => Number.parseInt(digits.slice(at, at + 4), 16).toString(16)).join(":");
  const bits = BigInt(`0x${digits}`) - MAPPED;
  return bits >= 0n && bits >> 32n === 0n ? [24n, 16n, 8n, 0n].map((at) => (bits >> at) & 0xffn).join(".") : groups;
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

/**
 * A list of addresses and CIDR blocks, which must be valid; null for an empty list. An IPv6 block that contains the
 * IPv4-mapped addresses, such as `::/0`, contains every IPv4 address.
 */
export function addressList(cidrs: readonly string[]): AddressList | null {
  if (cidrs.length === 0) return null;
  const list: AddressRange[] = [];
  for (const range of cidrs.map(rangeOf).sort((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = list.at(-1);
    if (before === undefined || range.first > before.last) list.push(range);
    // Two blocks overlap only if one contains the other, which begins first or at the same address.
    else if (range.last > before.last) list[list.length - 1] = range;
  }
  return list;
}

function rangeOf(cidr: string): AddressRange {
  const [address, length] = cidr.split("/") as [string, string | undefined];
  const width = isIPv4(address) ? 32 : 128;
  const free = (1n << BigInt(width - Number(length ?? width))) - 1n;
  const last = bitsOf(address) | free;
  return { first: last - free, last };
}

// In order.
const loopback: AddressList = ["::1", "127.0.0.0/8"].map(rangeOf);
