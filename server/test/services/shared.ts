import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { startPostgres } from "./postgres.ts";
import { startRedis } from "./redis.ts";
import type { Service } from "./service.ts";

/** How each server that test files share is started, by its path. */
const starts = new Map<string, () => Promise<Service>>([
  ["/postgres", startPostgres],
  ["/redis", startRedis],
]);

/** The servers that the files of one test run share. Each is started when the first file asks for it over HTTP. */
export class SharedServices {
  readonly url: string;
  readonly #server: Server;
  readonly #started: Map<string, Promise<Service>>;

  private constructor(server: Server, started: Map<string, Promise<Service>>) {
    this.#server = server;
    this.#started = started;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async open(): Promise<SharedServices> {
    const started = new Map<string, Promise<Service>>();
    const server = createServer((request, response) => {
      const path = request.url ?? "";
      const start = starts.get(path);
      if (!start) return void response.writeHead(404).end();
      const service = started.get(path) ?? start();
      started.set(path, service);
      service.then(
        ({ url }) => response.end(url),
        (problem: Error) => response.writeHead(500).end(problem.message),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new SharedServices(server, started);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await Promise.allSettled([...this.#started.values()].map(async (service) => (await service).stop()));
  }
}
