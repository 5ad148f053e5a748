import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../../../engine/src/clock/clock.ts";
import type { AddressList } from "../../../../engine/src/rules/address.ts";
import type { Operation } from "../rpc/operation.ts";
import type { RpcCalls } from "../rpc/server.ts";
import type { ReadBody } from "./long-body.ts";
import type { Send } from "./respond.ts";
import type { RouteGroups } from "./route-groups.ts";

/** What routes besides those of operations answer with. */
export interface RouteParts {
  rpc: RpcCalls;
  clock: Clock;
  operations: readonly Operation[];
  trustedProxies: AddressList | null;
  /** The public address of the service; empty: unknown. */
  publicUrl: string;
  /** Routes with a common prefix and a part that varies. */
  groups: RouteGroups;
  read: ReadBody;
  /** Bytes that the body of an operation may have. */
  bodyBytesMax(operation: Operation): number;
  send: Send;
  /** Answers without reading the rest of the body. */
  sendUnread: Send;
}

/** Adds routes to the server, once, before it listens. */
export type AddRoutes = (app: FastifyInstance, parts: RouteParts) => void;

/** Answers a request without a route; undefined: it gets a problem. */
export type AnswerUnrouted = (
  request: FastifyRequest,
  reply: FastifyReply,
  parts: Pick<RouteParts, "sendUnread">,
) => Promise<FastifyReply> | undefined;
