import type { FastifyReply } from "fastify";
import { SHORT_CONTENT_BYTES_MAX, writePace } from "../write-pace.ts";

/** Security headers of every response. */
const guards = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

/** Writes a content with its type, its policy and the security headers. */
export function sendContent(reply: FastifyReply, type: string, content: string | Buffer, policy: string): FastifyReply {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  reply.headers({ ...guards, "content-security-policy": policy, "content-type": type, "content-length": bytes.length });
  return reply.send(bytes.length > SHORT_CONTENT_BYTES_MAX ? writePace.stream(bytes) : bytes);
}
