import type { Clock } from "../../../../../engine/src/clock/clock.ts";
import type { AddressList } from "../../../../../engine/src/rules/address.ts";
import { namesOf, type Operation, pathOf } from "../../rpc/operation.ts";
import { Problem } from "../../rpc/problems.ts";
import type { Rpc } from "../../rpc/server.ts";
import { type HttpLimits, headersTimeoutOf, KEEP_ALIVE_MS } from "../limits.ts";
import { rejectSocket } from "../reject.ts";
import { FastLane, type FastLaneOptions } from "./fast-lane.ts";

/** What a server with a lane gives it. */
export interface LaneOptions extends Pick<FastLaneOptions, "metered" | "isClosing" | "handOver"> {
  rpc: Pick<Rpc, "call" | "reject">;
  clock: Clock;
  trustedProxies: AddressList | null;
  limits: HttpLimits;
}

/** Opens the lane for connections that begin with plain calls. */
export function openLane({ metered, rpc, clock, trustedProxies, limits, isClosing, handOver }: LaneOptions) {
  return new FastLane({
    rpc,
    clock,
    trustedProxies,
    isClosing,
    handOver,
    metered,
    keepAlive: KEEP_ALIVE_MS,
    firstRequest: headersTimeoutOf(limits),
    rejectSilent: (socket) => rejectSocket(socket, new Problem("request_timeout"), rpc),
  });
}

/** The metered operations by path: those whose bodies are always short, or those whose bodies may be long. */
export function meteredPaths(operations: readonly Operation[], areLong = false): ReadonlyMap<string, Operation> {
  const metered = operations.filter(
    ({ kind, declaration }) => kind === "metered" && (declaration.bodyBytesMax !== undefined) === areLong,
  );
  return new Map(metered.flatMap((operation) => namesOf(operation).map((name) => [pathOf(name), operation] as const)));
}
