import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { acceptsCoding } from "./accept.ts";
import { sendContent } from "./send-content.ts";

/** Large content that all responses share, plain and compressed. Made for the first request, and again when it changes. */
export class SharedContent {
  readonly #make: () => Promise<Buffer>;
  readonly #version: () => unknown;
  #made: Promise<{ plain: Buffer; compressed: Buffer }> | undefined;
  #madeVersion: unknown;

  constructor(make: () => Promise<Buffer>, version: () => unknown = () => "") {
    this.#make = make;
    this.#version = version;
  }

  async send(request: FastifyRequest, reply: FastifyReply, type: string, policy: string): Promise<FastifyReply> {
    const { plain, compressed } = await this.#current();
    reply.header("vary", "accept-encoding");
    if (!acceptsCoding(request.headers["accept-encoding"] as string | undefined, "gzip"))
      return sendContent(reply, type, plain, policy);
    return sendContent(reply.header("content-encoding", "gzip"), type, compressed, policy);
  }

  #current(): Promise<{ plain: Buffer; compressed: Buffer }> {
    const version = this.#version();
    if (this.#made === undefined || this.#madeVersion !== version) {
      this.#madeVersion = version;
      this.#made = this.#compress().catch((error: unknown) => {
        this.#made = undefined;
        throw error;
      });
    }
    return this.#made;
  }

  async #compress(): Promise<{ plain: Buffer; compressed: Buffer }> {
    const plain = await this.#make();
    return { plain, compressed: await promisify(gzip)(plain) };
  }
}
