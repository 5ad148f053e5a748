import type { FastifyInstance, FastifyReply } from "fastify";
import type { RpcCalls } from "../rpc/server.ts";
import type { Send } from "./respond.ts";

/** Whether the service can do its work, for load balancers. */
export type Readiness =
  | { ready: true; status: "ok" | "degraded"; checks: Record<string, string> }
  | { ready: false; status: "fail" | "shutting down"; checks: Record<string, string> };

/** Adds the routes for load balancers and supervisors. */
export function addHealthRoutes(app: FastifyInstance, rpc: RpcCalls, readiness: () => Readiness, send: Send): void {
  app.get("/v2/liveness", (_request, reply) =>
    send(reply, rpc.plain({ message: "we're cooking" }, "/v2/liveness"), ""),
  );
  const health = (reply: FastifyReply, status: number, body: object, path: string) =>
    send(reply, rpc.bare(status, body, path), "");
  app.get("/health/live", (_request, reply) => health(reply, 200, { status: "ok" }, "/health/live"));
  app.get("/health/ready", (_request, reply) => {
    const { ready, status, checks } = readiness();
    const body = Object.keys(checks).length > 0 ? { status, checks } : { status };
    return health(reply, ready ? 200 : 503, body, "/health/ready");
  });
}
