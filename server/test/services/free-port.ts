import { createServer } from "node:net";
import { systemRandom } from "../../../engine/src/random/system.ts";

/** Below the ports that systems give to outgoing connections, one of which could take the port before its user does. */
const [FIRST, LAST] = [10_000, 32_000];
const ATTEMPTS = 100;

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = FIRST + systemRandom.below(LAST - FIRST);
    try {
      await listenOnce(port);
      return port;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

function listenOnce(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(port, "127.0.0.1", () => server.close(() => resolve()));
  });
}
