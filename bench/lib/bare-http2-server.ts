/**
 * The minimum that a gRPC server in Node does for a unary call: `bare-http2-server.ts <answer in hexadecimal>` reads the message
 * and answers with that one and a status.
 */
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectToBench } from "./server-under-test.ts";

const message = Buffer.from(process.argv[2]!, "hex");
const answer = Buffer.alloc(5 + message.length);
answer.writeUInt32BE(message.length, 1);
answer.set(message, 5);

const server = createServer();
server.on("stream", (stream) => {
  stream.resume();
  stream.on("error", () => {});
  stream.once("end", () => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  connectToBench(`http://127.0.0.1:${port}`, async () => server.close());
});
