import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** One connection through the proxy, and what it holds back. */
interface Passage {
  readonly client: Socket;
  readonly server: Socket;
  /** Whether nothing of it comes back to the client any more. */
  isMute: boolean;
  readonly heldBack: (() => void)[];
}

/** Stands between a client and a server on this machine, and can delay, hold back and cut what passes. */
export class TcpProxy {
  /** Milliseconds by which everything is delayed, each way. */
  delayMs = 0;
  /** How many more times a connection is cut as soon as it has passed something on to the server. */
  cuts = 0;
  /**
   * Asked about everything that a client sends: `mute` passes it on and lets nothing come back on that connection from
   * then on, `lose` does not even pass it on.
   */
  judge: (bytes: Buffer) => "pass" | "mute" | "lose" = () => "pass";
  /**
   * Asked about everything that a server sends: the pieces in which the client gets it, each in a packet of its own, and
   * whether the connection ends then.
   */
  answer: (bytes: Buffer) => { pieces: Buffer[]; ends: boolean } = (bytes) => ({ pieces: [bytes], ends: false });
  /** Whether connections that are open now, and those to come, pass nothing on in silence, not even their end. */
  #swallowed = new WeakSet<Passage>();
  #swallowsNew = false;
  /** Told when a server answers on a connection of which nothing comes back: it has done what it was sent. */
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

  /** The target's address, but through here. */
  get url(): string {
    const url = new URL(this.#target);
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /** New connections lead to another server. */
  retarget(target: string): void {
    this.#target = new URL(target);
  }

  /** Holds back everything, both ways, the end of connections included. */
  stall(): void {
    this.#isStalled = true;
  }

  /** Resolves when something was held back. To be called before it is sent. */
  heldBack(): Promise<void> {
    return new Promise((resolve) => {
      this.#onHeldBack = resolve;
    });
  }

  /** Lets pass what was held back. */
  resume(): void {
    this.#isStalled = false;
    for (const { heldBack } of this.#passages) for (const pass of heldBack.splice(0)) pass();
  }

  /** A black hole, as a firewall that forgot its connections: what is open passes nothing on any more, for good. */
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

  /** Resolves when the server has read all there was to read of connections that are open now, and closed them. */
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
        // The server gets to read it, the client never hears what became of it.
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
    // In turns of the loop of their own, or they would be joined again.
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
