import assert from "node:assert/strict";
import type { TestServer } from "../harness.ts";
import { GrpcClient } from "./client.ts";
import { rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "./rate-limit-messages.ts";

/** A question that brings a limit which nobody reaches. Its namespace must exist. */
export const innocentQuestion = rateLimitRequest("edge", [{ entries: [["user", "innocent"]], limit: [1_000_000, 2] }]);

/** A caller that asks beside hostile peers. */
export class InnocentCaller extends GrpcClient {
  /** Asks some times, one after the other. */
  async isAnswered(times = 1): Promise<void> {
    for (let i = 0; i < times; i++) {
      const { status, body, message } = await this.call(SHOULD_RATE_LIMIT, innocentQuestion);
      assert.equal(status, 0, message);
      assert.equal(readResponse(body).code, 1);
    }
  }
}

/** The calls of gRPC that are open on a node. */
export async function openCallsOf(server: TestServer): Promise<number> {
  const count = Number(/^latchkey_grpc_calls (\d+)$/m.exec(await server.scrape())?.[1]);
  assert.ok(Number.isInteger(count));
  return count;
}
