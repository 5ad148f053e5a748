import { then } from "../../../engine/src/clock/then.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import type { Operation } from "../platform/rpc/operation.ts";
import {
  DECIDED_ELSEWHERE,
  type Rpc,
  type RpcCalls,
  type RpcRequest,
  type RpcResponse,
} from "../platform/rpc/server.ts";
import type { HttpHome } from "./http-home.ts";
import { passOnCall } from "./pass-on.ts";

/** Answers calls here if that is possible, and otherwise passes them on as they are. */
export class EdgeCalls implements RpcCalls {
  readonly #rpc: Rpc;
  readonly #home: HttpHome;
  readonly #random: Random;
  /** Calls that were passed on, for the metrics. */
  passedOn = 0;

  constructor(rpc: Rpc, home: HttpHome, random: Random) {
    this.#rpc = rpc;
    this.#home = home;
    this.#random = random;
  }

  call(operation: Operation, request: RpcRequest): RpcResponse | Promise<RpcResponse> {
    // The records of repeated calls are at home.
    if (request.idempotencyKey !== undefined) return this.passOn(operation, request);
    return then(this.#rpc.call(operation, request), (answer) =>
      answer.status === DECIDED_ELSEWHERE ? this.passOn(operation, request) : answer,
    );
  }

  recognize(...caller: Parameters<RpcCalls["recognize"]>) {
    return this.#rpc.recognize(...caller);
  }

  reject(...problem: Parameters<RpcCalls["reject"]>) {
    return this.#rpc.reject(...problem);
  }

  failed(...failure: Parameters<RpcCalls["failed"]>) {
    return this.#rpc.failed(...failure);
  }

  plain(...data: Parameters<RpcCalls["plain"]>) {
    return this.#rpc.plain(...data);
  }

  bare(...answer: Parameters<RpcCalls["bare"]>) {
    return this.#rpc.bare(...answer);
  }

  /** Gives home a call as it is. Never rejects: without home it is the answer of a node without its database. */
  async passOn(operation: Operation, request: RpcRequest): Promise<RpcResponse> {
    this.passedOn++;
    try {
      return await passOnCall(this.#home, operation, request, this.#random);
    } catch (error) {
      const cause = new StoreUnavailable(`Home does not answer (${(error as Error).message})`, { cause: error });
      return this.#rpc.failed(cause, request.path);
    }
  }
}
