import { promises as dns, type LookupAddress } from "node:dns";
import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";

/** Finds the addresses of a host name; an empty list if there are none. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

const QUERY_TIMEOUT: Milliseconds = 2_000;
const TRIES = 2;

/**
 * Asks the name servers of the machine. Unlike `lookupHost`, it occupies no thread while a slow name server is silent.
 * The servers are read each time, because they may have changed.
 */
export async function queryHost(host: string): Promise<readonly LookupAddress[]> {
  const special = resolveSpecial(host);
  if (special) return special;
  const resolver = new dns.Resolver({ timeout: QUERY_TIMEOUT, tries: TRIES });
  const [ipv4, ipv6] = await Promise.all([
    resolver.resolve4(host).catch(() => []),
    resolver.resolve6(host).catch(() => []),
  ]);
  return [
    ...ipv6.map((address): LookupAddress => ({ address, family: 6 })),
    ...ipv4.map((address): LookupAddress => ({ address, family: 4 })),
  ];
}

/** Resolves a name as other programs of the machine do: with its hosts file and search domains. */
export async function lookupHost(host: string): Promise<readonly LookupAddress[]> {
  return resolveSpecial(host) ?? dns.lookup(host, { all: true }).catch(() => []);
}

/** The addresses of names that no name server has to know (RFC 6761, sections 6.3 and 6.4); undefined for other names. */
function resolveSpecial(host: string): readonly LookupAddress[] | undefined {
  if (/(^|\.)localhost$/.test(host)) return [{ address: "127.0.0.1", family: 4 }];
  return host.endsWith(".invalid") ? [] : undefined;
}
