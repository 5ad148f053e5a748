import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** One connection through the proxy, and its delayed data. */
interface Passage {
  readonly client: Socket;
  readonly server: Socket;
  /** Whether the client gets nothing from it any more. */
  isMute: boolean;
  readonly heldBack: (() => void)[];
}

/** A proxy between a client and a server on this machine. It can delay, hold back and cut connections. */
export class TcpProxy {
  /** The delay in milliseconds, in each direction. */
  delayMs = 0;
  /** The number of further connections to cut after their first data was forwarded to the server. */
  cuts = 0;
  /**
   * Called with all data from a client: `mute` forwards it and drops all answers on that connection from then on,
   * `lose` also drops the data.
   */
  judge: (bytes: Buffer) => "pass" | "mute" | "lose" = () => "pass";
  /**
   * Called with all data from a server: returns the pieces that the client gets, each in a packet of its own, and
   * whether the connection ends then.
   */
  answer: (bytes: Buffer) => { pieces: Buffer[]; ends: boolean } = (bytes) => ({ pieces: [bytes], ends: false });
  /** Whether present and future connections silently drop all data, including their end. */
  #swallowed = new WeakSet<Passage>();
  #swallowsNew = false;
  /** Called when a server answers on a muted connection: it has executed the command. */
  onMuted: () => void = () => {};
  /** Whether new connections are closed at once. */
  isClosed = false;
  readonly #server: Server;
  #target: URL;
  readonly #passages = new Set<Passage>();
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
    for (const { heldBack } of this.#passages) for (const pass of heldBack.splice(0)) pass();
  }

  /** Drops all data of open connections permanently and silently, like a firewall that lost its connection table. */
  swallow(newOnesToo: boolean): void {
    for (const passage of this.#passages) this.#swallowed.add(passage);
    this.#swallowsNew = newOnesToo;
  }

  /** Cuts all connections. */
  cut(): void {
    for (const { client, server } of this.#passages) {
      client.destroy();
      server.destroy();
    }
  }

  /** Resolves when the server has read all data of the open connections and closed them. */
  async drained(): Promise<void> {
    await Promise.all([...this.#passages].map(({ server }) => server.closed || once(server, "close")));
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
    const passage: Passage = { client, server, isMute: false, heldBack: [] };
    this.#passages.add(passage);
    if (this.#swallowsNew) this.#swallowed.add(passage);
    client.on("error", () => {});
    server.on("error", () => {});
    client.setNoDelay();
    server.setNoDelay();
    client.on("data", (bytes: Buffer) =>
      this.#forward(passage, () => {
        const judgement = this.judge(bytes);
        if (judgement !== "pass") passage.isMute = true;
        if (judgement !== "lose") server.write(bytes);
        if (this.cuts === 0) return;
        this.cuts--;
        // The server executes the command, and the client gets no answer.
        server.end();
        client.destroy();
      }),
    );
    server.on("data", (bytes) =>
      this.#forward(passage, () => {
        if (passage.isMute) this.onMuted();
        else this.#answer(client, bytes);
      }),
    );
    client.on("close", () => this.#forward(passage, () => server.end()));
    server.on("close", () => {
      this.#passages.delete(passage);
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

  #forward(passage: Passage, pass: () => void): void {
    if (this.#swallowed.has(passage)) return;
    if (this.#isStalled) {
      passage.heldBack.push(pass);
      this.#onHeldBack?.();
    } else if (this.delayMs > 0) setTimeout(pass, this.delayMs);
    else pass();
  }
}
