import { parentPort } from "node:worker_threads";
import { type Exchange, OutboundFailure } from "./exchange.ts";
import { HttpTransport } from "./http-transport.ts";
import type { FromOutboundThread, ToOutboundThread } from "./thread-messages.ts";

const transport = new HttpTransport();
const open = new Map<number, Exchange>();
const port = parentPort!;

port.on("message", (message: ToOutboundThread) => {
  const [, id] = message;
  if (message[0] === "end") {
    open.get(id)?.end(new OutboundFailure(message[2], message[3]));
    return;
  }
  const exchange = transport.begin(message[2]);
  open.set(id, exchange);
  void exchange.answer
    .then(
      // A copy: a message has the whole memory of which a buffer is a part.
      ({ status, body, isComplete }): FromOutboundThread => ["answer", id, status, new Uint8Array(body), isComplete],
      ({ reason = "failed", message }: OutboundFailure): FromOutboundThread => ["failure", id, reason, message],
    )
    .then((ended) => {
      open.delete(id);
      port.postMessage(ended);
    });
});
