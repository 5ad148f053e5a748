/**
 * The minimum that an HTTP server in Node does for a POST with JSON: `bare-server.ts <length>` reads the body, parses
 * it and answers JSON of that many bytes.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connectToBench } from "./server-under-test.ts";

const length = Number(process.argv[2]);
const answer = JSON.stringify({ filler: "x".repeat(length - '{"filler":""}'.length) });

const server = createServer((request, response) => {
  let body: Buffer | undefined;
  request.on("data", (chunk: Buffer) => {
    body = body === undefined ? chunk : Buffer.concat([body, chunk]);
  });
  request.on("end", () => {
    JSON.parse(body!.toString());
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": length });
    response.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  connectToBench(`http://127.0.0.1:${port}`, async () => server.close());
});
