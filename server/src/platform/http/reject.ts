import type { Socket } from "node:net";
import { Problem, problems } from "../rpc/problems.ts";
import type { Rpc } from "../rpc/server.ts";

/** Answers input that is not HTTP, or a request that did not arrive in time. */
export function rejectConnection(error: NodeJS.ErrnoException, socket: Socket, rpc: Pick<Rpc, "reject">): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  rejectSocket(socket, problemOf(error), rpc);
}

function problemOf({ code }: NodeJS.ErrnoException): Problem {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Problem("request_timeout");
    case "HPE_HEADER_OVERFLOW":
      return new Problem("request_headers_too_large");
    default:
      return new Problem("invalid_input", "This is not a valid HTTP request.", {
        errors: [
          {
            location: "header",
            message: "the request line, a header or the framing of the body is malformed",
            fix: "Check what the client or a proxy in front of the service sends.",
          },
        ],
      });
  }
}

/** Writes a problem to a connection without a request, and ends it. */
export function rejectSocket(socket: Socket, problem: Problem, rpc: Pick<Rpc, "reject">): void {
  const { status, body, requestId, headers = {} } = rpc.reject(problem);
  const fields = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
    "Content-Length": Buffer.byteLength(body),
    Connection: "close",
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  // Input that arrives meanwhile is read and discarded: unread input would reset the connection and lose the answer.
  socket.on("error", () => {});
  socket.resume();
  socket.end(`HTTP/1.1 ${status} ${problems[problem.code].title}\r\n${lines.join("")}\r\n${body}`);
}
