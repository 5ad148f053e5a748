import { isIP } from "node:net";
import { isPublicAddress } from "./public-address.ts";

/** Why no request can go to a URL; undefined if it can. Names are not resolved. */
export function findUrlFault(url: string, allowPrivate: boolean): string | undefined {
  if (!URL.canParse(url)) return "is not a URL";
  const { protocol, username, password, hostname } = new URL(url);
  if (protocol !== "https:" && !(allowPrivate && protocol === "http:")) return "must begin with https://";
  if (username !== "" || password !== "") return "must not contain a user name or a password";
  if (!allowPrivate && isIP(bare(hostname)) !== 0 && !isPublicAddress(bare(hostname))) {
    return "must be a public address";
  }
  return undefined;
}

/** The host of a URL, for counts of its requests: without the dot that may follow the name. Empty if it is no URL. */
export function hostOf(url: string): string {
  return URL.parse(url)?.hostname.replace(/\.$/, "") ?? "";
}

/** The host name of a URL without the brackets of an IPv6 address. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}
