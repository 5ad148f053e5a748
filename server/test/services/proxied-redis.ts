import { after, afterEach, before } from "node:test";
import { TcpProxy } from "../tcp-proxy.ts";
import { startRedis } from "./redis.ts";
import type { Service } from "./service.ts";

/**
 * Gives the suite that calls it a Redis behind a proxy, passed to `onStart`. After each test the connections of the returned
 * list are closed, and the proxy passes everything again.
 */
export function useProxiedRedis(onStart: (redis: { server: Service; proxy: TcpProxy }) => void): { close(): void }[] {
  const connections: { close(): void }[] = [];
  let server: Service;
  let proxy: TcpProxy;
  before(async () => {
    server = await startRedis();
    proxy = await TcpProxy.open(server.url);
    onStart({ server, proxy });
  });
  after(async () => {
    await proxy.close();
    await server.stop();
  });
  afterEach(() => {
    for (const connection of connections.splice(0)) connection.close();
    proxy.isClosed = false;
    proxy.resume();
  });
  return connections;
}
