import { STATUS_CODES } from "node:http";
import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { RpcResponse } from "../../rpc/server.ts";
import { contentTypeOf } from "../respond.ts";

/** Characters that would end a header. */
const UNSAFE = /[^\t\x20-\x7e]/;

/** Formats answers as `node:http` does. */
export class AnswerText {
  readonly #clock: Clock;
  readonly #keepAlive: string;
  #second = Number.NaN;
  /** The headers at the end of a head: of a connection that stays open, and of one that ends. */
  #staysOpen = "";
  #ends = "";

  constructor(clock: Clock, keepAlive: Milliseconds) {
    this.#clock = clock;
    this.#keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAlive / 1_000)}\r\n\r\n`;
  }

  /**
   * The whole answer as text to be written as Latin-1.
   *
   * @throws if a header has a character that is not allowed there.
   */
  of({ status, body, requestId, headers }: RpcResponse, path: string, isLast: boolean): string {
    const bytes = Buffer.byteLength(body);
    let more = "";
    if (headers) {
      for (const name in headers) {
        const value = headers[name]!;
        if (UNSAFE.test(value)) throw new TypeError(`The header ${name} has an invalid character`);
        more += `${name}: ${value}\r\n`;
      }
    }
    return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${contentTypeOf(status, path)}\r\nX-Request-Id: ${requestId}\r\nContent-Length: ${bytes}\r\n${more}${isLast ? this.#ends : this.#staysOpen}${
      // The UTF-8 bytes of a text that is not ASCII, each as a character.
      bytes === body.length ? body : Buffer.from(body).toString("latin1")
    }`;
  }

  /** Sets the date of the answers from here on. */
  renewDate(): void {
    const second = Math.floor(this.#clock.now() / 1_000);
    if (second === this.#second) return;
    this.#second = second;
    const date = `Date: ${new Date(second * 1_000).toUTCString()}\r\n`;
    this.#staysOpen = date + this.#keepAlive;
    this.#ends = `Connection: close\r\n${date}\r\n`;
  }
}
