/** What one request needs of a transport. The client has checked the URL. */
export interface ExchangePlan {
  url: string;
  method: "GET" | "POST";
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Whether the request may go to any address. */
  allowPrivate: boolean;
  /** The most bytes of an answer's body that are read. */
  answerBytesMax: number;
}

export interface OutboundAnswer {
  /** 200 to 599. A redirect is an answer like others: it is not followed. */
  status: number;
  /** The first bytes of the body, not decompressed. */
  body: Buffer;
  /** Whether `body` is the whole body: it was not too long and arrived in time. */
  isComplete: boolean;
}

/** A request under way. */
export interface Exchange {
  /** Rejects with an `OutboundFailure`. */
  readonly answer: Promise<OutboundAnswer>;
  /** Ends it: with the part of an answer that has arrived, or with this failure if there is none. */
  end(failure: OutboundFailure): void;
}

/** Sends requests. It knows no time: who begins an exchange ends it. */
export interface Transport {
  begin(plan: ExchangePlan): Exchange;
}

/**
 * Why there is no answer. `forbidden`: the URL is not allowed, or its host has no address that is allowed. `busy`: too
 * many requests are open. `timeout`: no complete head of an answer arrived in time. `failed`: everything else.
 */
export type OutboundFailureReason = "forbidden" | "busy" | "timeout" | "failed";

/** A request without an answer. The message is one line, and names no address. */
export class OutboundFailure extends Error {
  readonly reason: OutboundFailureReason;

  constructor(reason: OutboundFailureReason, message: string) {
    super(message);
    this.name = "OutboundFailure";
    this.reason = reason;
  }
}
