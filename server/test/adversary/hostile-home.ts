import { once } from "node:events";
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Server } from "../process.ts";

/** A request as home has read it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Answer = (request: SeenRequest, response: ServerResponse) => void;

/** What an edge takes for its service. It answers edges as a real one does, unless it damages that, and all other requests as a test wants. */
export class HostileHome {
  /** Requests of callers. */
  readonly seen: SeenRequest[] = [];
  /** Answers a request of a caller. */
  answer: Answer = (_, response) => response.end("{}");
  /** Answers a request of a caller before its body has arrived, if it returns true. */
  rejects: (path: string, response: ServerResponse) => boolean = () => false;
  /** What the edge gets in the place of an answer to it. */
  damage: (operation: string, answer: string) => string = (_, answer) => answer;
  readonly #home: Server;
  readonly #server: HttpServer;

  private constructor(home: Server) {
    this.#home = home;
    this.#server = createServer(
      { keepAliveTimeout: 60_000 },
      (request, response) => void this.#take(request, response),
    );
  }

  static async open(home: Server): Promise<HostileHome> {
    const hostile = new HostileHome(home);
    hostile.#server.listen(0, "127.0.0.1");
    await once(hostile.#server, "listening");
    return hostile;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    const { method = "", url = "", headers } = request;
    if (this.rejects(url, response)) return;
    await once(request, "end").catch(() => {});
    const seen = { method, path: url, headers, body: Buffer.concat(chunks).toString() };
    if (!url.startsWith("/v2/replica.")) {
      this.seen.push(seen);
      this.answer(seen, response);
    } else {
      const { authorization = "" } = headers;
      const sent = { method, headers: { authorization, "content-type": "application/json" }, body: seen.body };
      try {
        const answer = await fetch(`${this.#home.address}${url}`, sent);
        const text = this.damage(url.slice("/v2/".length), await answer.text());
        response.writeHead(answer.status, { "content-type": "application/json" }).end(text);
      } catch {
        // The test has ended.
        response.destroy();
      }
    }
  }
}
