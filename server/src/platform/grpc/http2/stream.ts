import type { RequestHead } from "./request-head.ts";

/** What a stream tells the call that it carries. */
export interface StreamListener {
  /** The first one: the stream can be answered. */
  begin(): void;
  /** Content, which is to be copied. */
  receive(chunk: Buffer): void;
  /** The peer has ended its side. */
  end(): void;
  /** The stream has closed, also because the connection has. Nothing follows. */
  close(): void;
}

/** What a connection does for its streams. */
export interface StreamOwner {
  /** Sends what the windows allow of the answer. */
  send(stream: Stream): void;
  sendBlock(stream: Stream, block: Buffer): void;
  reset(stream: Stream, code: number): void;
}

/** A stream that a peer has opened: a request, and its answer. It is open until both are complete, or one side resets it. */
export class Stream {
  readonly id: number;
  readonly head: RequestHead;
  listener: StreamListener | undefined;
  isOpen = true;
  /** Whether the peer has ended its side. */
  hasRequest = false;
  /** Bytes of content that have arrived, without padding. */
  received = 0;
  /** Bytes that the peer may still send. */
  receiveWindow: number;
  /** Bytes that the peer still takes. */
  sendWindow: number;
  /** Whether the head of the answer was sent. */
  hasAnswerHead = false;
  /** What is left of the content of the answer; undefined: there is none yet. */
  rest: Buffer | undefined;
  readonly #owner: StreamOwner;

  constructor(id: number, head: RequestHead, windows: { receive: number; send: number }, owner: StreamOwner) {
    this.id = id;
    this.head = head;
    this.receiveWindow = windows.receive;
    this.sendWindow = windows.send;
    this.#owner = owner;
  }

  /** Whether the content is as long as the head says. */
  get hasLengthOfHead(): boolean {
    return this.head.contentLength === undefined || this.head.contentLength === this.received;
  }

  /** Answers with this content and the status OK. */
  answer(content: Buffer): void {
    if (!this.isOpen) return;
    this.rest = content;
    this.#owner.send(this);
  }

  /** Answers with header fields only. */
  answerWithout(block: Buffer): void {
    if (this.isOpen) this.#owner.sendBlock(this, block);
  }

  /** Ends the stream without an answer. */
  reset(code: number): void {
    if (this.isOpen) this.#owner.reset(this, code);
  }
}
