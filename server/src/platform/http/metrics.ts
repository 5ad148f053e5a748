import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";

/** The text that a scraper gets. */
export type Expose = () => Promise<{ text: string; contentType: string }>;

/** Adds `/metrics` to the listener of the API. */
export function addMetrics(app: FastifyInstance, expose: Expose): void {
  app.get("/metrics", async (_request, reply) => {
    const { text, contentType } = await expose();
    return reply.header("content-type", contentType).send(text);
  });
}

export interface MetricsListener {
  address: AddressInfo;
  close(): Promise<void>;
}

/** Opens a separate listener for `/metrics`, for networks in which callers must not reach it. */
export async function openMetricsListener(host: string, port: number, expose: Expose): Promise<MetricsListener> {
  const server = createServer((request, response) => {
    if (request.url !== "/metrics" || (request.method !== "GET" && request.method !== "HEAD")) {
      response.writeHead(404).end();
      return;
    }
    expose().then(
      ({ text, contentType }) => response.writeHead(200, { "content-type": contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    address: server.address() as AddressInfo,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
