import { createClient } from "@redis/client";
import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";

export type Client = ReturnType<typeof openClient>;

/** A socket that speaks the protocol of Redis. It is not connected yet, and its owner handles failures. */
export function openClient(url: string, connectTimeout: Milliseconds) {
  return createClient({
    url,
    RESP: 2,
    name: "latchkey",
    disableOfflineQueue: true,
    maintNotifications: "disabled",
    // Disables the timeouts and reconnections of the client, because the owner handles both.
    commandOptions: { timeout: 0 },
    socket: { connectTimeout, reconnectStrategy: false },
  });
}
