import type { ExchangePlan, OutboundFailureReason } from "./exchange.ts";

export type ToOutboundThread =
  | [type: "begin", id: number, plan: ExchangePlan]
  | [type: "end", id: number, reason: OutboundFailureReason, message: string];

export type FromOutboundThread =
  | [type: "answer", id: number, status: number, body: Uint8Array, isComplete: boolean]
  | [type: "failure", id: number, reason: OutboundFailureReason, message: string];
