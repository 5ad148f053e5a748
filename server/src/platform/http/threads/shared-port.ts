import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Why several threads cannot listen on a port; undefined if they can. A server that shares its port would also share it
 * with another program of the same user, so this makes sure that there is none.
 *
 * @throws when the address is in use, or is not an address of this machine.
 */
export async function findObstacleToSharing(host: string, port: number): Promise<unknown> {
  await tryPort({ host, port });
  try {
    await tryPort({ host, port: 0, reusePort: true });
    return undefined;
  } catch (error) {
    return error;
  }
}

async function tryPort(options: { host: string; port: number; reusePort?: boolean }): Promise<void> {
  const server = createServer().listen(options);
  await once(server, "listening");
  server.close();
  await once(server, "close");
}
