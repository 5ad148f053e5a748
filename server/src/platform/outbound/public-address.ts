import { isIPv4, isIPv6 } from "node:net";
import { type AddressList, addressList, isListed } from "../../../../engine/src/rules/address.ts";

/**
 * Addresses that are not of one host on the public internet (IANA IPv4 and IPv6 Special-Purpose Address Registries), and
 * the one address of the public internet at which a cloud serves its machines.
 */
const special = addressList([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Link-local addresses. Most clouds serve metadata and credentials at 169.254.169.254.
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  // Azure's service for its machines.
  "168.63.129.16",
  // Protocol assignments, with Teredo, whose addresses contain IPv4 addresses.
  "2001::/23",
  "2001:db8::/32",
  // 6to4, likewise.
  "2002::/16",
  "3fff::/20",
]) as AddressList;

/** Every IPv6 address outside of global unicast (RFC 4291, section 2.4) is special. */
const globalUnicast = addressList(["2000::/3"]) as AddressList;

/** The prefix by which NAT64 reaches IPv4 addresses (RFC 6052), in canonical spelling. */
const NAT64 = /^64:ff9b::([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;
const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;

/**
 * Whether an address can be of a host on the public internet: false for private, loopback, link-local, multicast and
 * reserved addresses, and for a text that is no address. An IPv6 address that stands for an IPv4 address counts as that.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !isListed(special, address);
  // Zoned addresses are link-local.
  if (!isIPv6(address) || address.includes("%")) return false;
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = MAPPED.exec(canonical) ?? NAT64.exec(canonical) ?? [];
  if (high !== undefined && low !== undefined) return isPublicAddress(dotted(high, low));
  return isListed(globalUnicast, canonical) && !isListed(special, canonical);
}

function dotted(...groups: readonly string[]): string {
  return groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]).join(".");
}
