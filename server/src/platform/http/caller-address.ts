import type { IncomingMessage } from "node:http";
import { type AddressList, callerAddress } from "../../../../engine/src/rules/address.ts";

/** The address of the caller of a request; see `callerAddress`. */
export function addressOf({ headers, socket }: IncomingMessage, trustedProxies: AddressList | null): string {
  return callerAddress(socket.remoteAddress ?? "", headers["x-forwarded-for"] as string | undefined, trustedProxies);
}
