import type { IncomingMessage } from "node:http";

/** The body of an answer as text. Rejects if it has more bytes, or if it ends early. */
export async function collected(answer: IncomingMessage, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new Error(`The answer has more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The status of an answer that has arrived. */
export function statusOf({ statusCode = 502 }: IncomingMessage): number {
  return statusCode;
}
