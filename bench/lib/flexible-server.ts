/** A rate limit decided by `rate-limiter-flexible` in memory, behind bare `node:http`. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { connectToBench } from "./server-under-test.ts";

/** One limiter for each limit and duration, as the library requires. */
const limiters = new Map<string, RateLimiterMemory>();

function limiterOf(limit: number, duration: number): RateLimiterMemory {
  const name = `${limit}:${duration}`;
  let limiter = limiters.get(name);
  if (!limiter) {
    limiter = new RateLimiterMemory({ points: limit, duration: duration / 1_000 });
    limiters.set(name, limiter);
  }
  return limiter;
}

const server = createServer((request, response) => {
  let body: Buffer | undefined;
  request.on("data", (chunk: Buffer) => {
    body = body === undefined ? chunk : Buffer.concat([body, chunk]);
  });
  request.on("end", () => {
    const { namespace, identifier, limit, duration, cost = 1 } = JSON.parse(body!.toString());
    const answer = (success: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes) => {
      const data = { success, limit, remaining: remainingPoints, reset: msBeforeNext, retryAfter: 0 };
      const text = JSON.stringify({ data });
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
      response.end(text);
    };
    limiterOf(limit, duration)
      .consume(`${namespace}\0${identifier}`, cost)
      .then(
        (state) => answer(true, state),
        (state: unknown) => {
          if (!(state instanceof RateLimiterRes)) throw state;
          answer(false, state);
        },
      );
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  connectToBench(`http://127.0.0.1:${port}`, async () => server.close());
});
