import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** One connection through the proxy, and its delayed data. */
interface ProxiedConnection {
  readonly client: Socket;
  readonly server: Socket;
  /** Whether the client gets nothing from it any more. */
  isMute: boolean;
  readonly heldBack: (() => void)[];
  /** Delayed data in both directions, in the order of arrival. */
  readonly delayed: (() => void)[];
}

/** A proxy between a client and a server on this machine. It can delay, hold back, drop and cut connections. */
export class TcpProxy {
  /** The delay in milliseconds, in each direction. */
  delayMs = 0;
  /** The delay of one connection, in place of that of all. */
  delayOf: ((connection: object) => number) | undefined;
  /** The number of further connections to cut after their first data was forwarded to the server. */
  cuts = 0;
  /**
   * Called with all data from a client, and with an object that stands for its connection: `mute` forwards the data and
   * drops all answers on that connection from then on, `drop` also drops the data.
   */
  filter: (bytes: Buffer, connection: object) => "pass" | "mute" | "drop" = () => "pass";
  /**
   * Called with all data from a server: returns the pieces that the client gets, each in a packet of its own, and
   * whether the connection ends then.
   */
  answer: (bytes: Buffer) => { pieces: Buffer[]; ends: boolean } = (bytes) => ({ pieces: [bytes], ends: false });
  /** Whether present and future connections silently drop all data, including their end. */
  #blackholed = new WeakSet<ProxiedConnection>();
  #blackholesNew = false;
  /** Called when a server answers on a muted connection: it has executed the command. */
  onMuted: () => void = () => {};
  /** Whether new connections are closed at once. */
  isClosed = false;
  readonly #server: Server;
  #target: URL;
  readonly #connections = new Set<ProxiedConnection>();
  #isStalled = false;
  #onHeldBack: (() => void) | undefined;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((client) => this.#pass(client));
  }

  static async open(target: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(target));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** The target's address through this proxy. */
  get url(): string {
    const url = new URL(this.#target);
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /** Connects new connections to another server. */
  retarget(target: string): void {
    this.#target = new URL(target);
  }

  /** Holds back all data in both directions, including the end of connections. */
  stall(): void {
    this.#isStalled = true;
  }

  /** Resolves when data was held back. Call it before the data is sent. */
  heldBack(): Promise<void> {
    return new Promise((resolve) => {
      this.#onHeldBack = resolve;
    });
  }

  /** Forwards the held-back data. */
  resume(): void {
    this.#isStalled = false;
    for (const { heldBack } of this.#connections) for (const pass of heldBack.splice(0)) pass();
  }

  /** Drops all data of open connections permanently and silently, like a firewall that lost its connection table. */
  blackhole(newOnesToo: boolean): void {
    for (const connection of this.#connections) this.#blackholed.add(connection);
    this.#blackholesNew = newOnesToo;
  }

  /** Ends the direction to the client of open connections. The server still gets what the clients send. */
  halfClose(): void {
    for (const connection of this.#connections) {
      connection.isMute = true;
      connection.client.end();
    }
  }

  /** Cuts all connections. */
  cut(): void {
    for (const { client, server } of this.#connections) {
      client.destroy();
      server.destroy();
    }
  }

  /** Resolves when the server has read all data of the open connections and closed them. */
  async drained(): Promise<void> {
    await Promise.all([...this.#connections].map(({ server }) => server.closed || once(server, "close")));
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #pass(client: Socket): void {
    if (this.isClosed) {
      client.destroy();
      return;
    }
    const server = connect(Number(this.#target.port), this.#target.hostname);
    const connection: ProxiedConnection = { client, server, isMute: false, heldBack: [], delayed: [] };
    this.#connections.add(connection);
    if (this.#blackholesNew) this.#blackholed.add(connection);
    client.on("error", () => {});
    server.on("error", () => {});
    client.setNoDelay();
    server.setNoDelay();
    client.on("data", (bytes: Buffer) =>
      this.#forward(connection, () => {
        const verdict = this.filter(bytes, connection);
        if (verdict !== "pass") connection.isMute = true;
        if (verdict !== "drop") server.write(bytes);
        if (this.cuts === 0) return;
        this.cuts--;
        // The server executes the command, and the client gets no answer.
        server.end();
        client.destroy();
      }),
    );
    server.on("data", (bytes) =>
      this.#forward(connection, () => {
        if (connection.isMute) this.onMuted();
        else this.#answer(client, bytes);
      }),
    );
    client.on("close", () => this.#forward(connection, () => server.end()));
    server.on("close", () => {
      this.#connections.delete(connection);
      client.destroy();
    });
  }

  #answer(client: Socket, bytes: Buffer): void {
    const { pieces, ends } = this.answer(bytes);
    const [first, ...later] = pieces;
    if (first) client.write(first);
    // In separate turns of the event loop, so that the pieces are not joined.
    const next = () => {
      const piece = later.shift();
      if (piece) client.write(piece, () => setImmediate(next));
      else if (ends) client.end();
    };
    setImmediate(next);
  }

  #forward(connection: ProxiedConnection, pass: () => void): void {
    if (this.#blackholed.has(connection)) return;
    if (this.#isStalled) {
      connection.heldBack.push(pass);
      this.#onHeldBack?.();
      return;
    }
    const delayMs = this.delayOf?.(connection) ?? this.delayMs;
    if (delayMs > 0 || connection.delayed.length > 0) {
      connection.delayed.push(pass);
      // The first in the queue, so that data stays in order when the delay changes.
      setTimeout(() => connection.delayed.shift()!(), delayMs);
    } else pass();
  }
}
