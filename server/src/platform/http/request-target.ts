import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

const ABSOLUTE_FORM = /^https?:\/\/([^/?#@\\]+)(?=\/)/i;

/** Below this path, the rest of the address is the end user's. */
const FOREIGN_PREFIX = "/auth/verify/";

/**
 * Turns a target in absolute form (`GET http://keys.example/v2/…`) into the path alone, as RFC 9112, section 3.2.2 asks for.
 * Its host replaces the Host header.
 */
export function useOriginForm(request: IncomingMessage): void {
  const [start, authority] = ABSOLUTE_FORM.exec(request.url!) ?? [];
  if (start === undefined) return;
  request.url = request.url!.slice(start.length);
  request.headers.host = authority;
}

/**
 * Whether an address has the one spelling under which the service answers. The router would decode `%6d` and end a path at
 * `#`, so a path that a proxy blocks would be reachable in another spelling.
 */
export function isPlainTarget(target: string): boolean {
  if (!target.startsWith("/")) return false;
  if (target.startsWith(FOREIGN_PREFIX)) return true;
  const query = target.indexOf("?");
  return !/[%#]/.test(query === -1 ? target : target.slice(0, query));
}

/** What is not for browsers, or shows every reader the same. Load balancers and clients name any host. */
const FOR_ANY_HOST =
  /^\/(?:v2|auth|oauth|\.well-known\/oauth-authorization-server|leaks|health|metrics|errors|reference|openapi\.json|favicon\.ico)(?:[/?]|$)/;

/**
 * Says whether a request may name this host. The dashboard and the portal have one, that of the public address: otherwise a
 * page of somebody else whose name leads to this service (DNS rebinding) would have the same origin as they. Nobody can give
 * such a page an address as its name, nor `localhost`.
 */
export function hostCheck(publicUrl: string): (request: IncomingMessage) => boolean {
  if (publicUrl === "") return () => true;
  const own = new URL(publicUrl).hostname;
  return ({ url, headers: { host = "" } }) => {
    if (FOR_ANY_HOST.test(url!)) return true;
    const name = host.replace(/:\d*$/, "").toLowerCase();
    return name === own || name === "localhost" || isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
  };
}
