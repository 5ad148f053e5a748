import { once } from "node:events";
import { connect, type Socket } from "node:net";

const HEAD_END = "\r\n\r\n";

/** A connection with HTTP pipelining: requests are sent before earlier ones are answered, with little CPU. */
export class Pipeline {
  readonly #socket: Socket;
  readonly #headers: string;
  #text = "";
  /** Callbacks in the order of the requests, which is that of the answers. */
  #waiting: ((status: number) => void)[] = [];

  static async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Pipeline> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, "connect");
    return new Pipeline(socket, headers);
  }

  private constructor(socket: Socket, headers: Readonly<Record<string, string>>) {
    this.#socket = socket;
    const all = { Host: "bench", "Content-Type": "application/json", ...headers };
    this.#headers = Object.entries(all)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("");
    socket.setEncoding("latin1").on("data", (chunk) => this.#read(chunk as unknown as string));
    socket.on("close", () => {
      for (const resolve of this.#waiting) resolve(0);
      this.#waiting = [];
    });
    socket.on("error", () => {});
  }

  /** Sends a POST with JSON in ASCII; resolves to the status of its answer, 0 if the connection closes. */
  post(path: string, body: string): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#waiting.push(resolve);
    const head = `POST ${path} HTTP/1.1\r\n${this.#headers}Content-Length: ${body.length}`;
    this.#socket.write(head + HEAD_END + body, "latin1");
    return promise;
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: string): void {
    this.#text += chunk;
    for (;;) {
      const headEnd = this.#text.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const head = this.#text.slice(0, headEnd);
      const length = Number(/^Content-Length: (\d+)$/im.exec(head)![1]);
      const end = headEnd + HEAD_END.length + length;
      if (this.#text.length < end) return;
      this.#text = this.#text.slice(end);
      this.#waiting.shift()!(Number(head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length)));
    }
  }
}
