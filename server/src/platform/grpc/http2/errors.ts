/** What a peer does against the protocol. */
export class ProtocolError extends Error {
  /** An error code of HTTP/2. */
  readonly code: number;
  /** Undefined: the connection ends. */
  readonly stream: number | undefined;

  constructor(code: number, stream?: number) {
    super(`The peer violates HTTP/2 (error code ${code}).`);
    this.name = "ProtocolError";
    this.code = code;
    this.stream = stream;
  }
}
