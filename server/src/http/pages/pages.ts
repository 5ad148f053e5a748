import type { Server } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Problem, type ProblemCode, problems } from "../../rpc/problems.ts";
import type { Rpc, RpcResponse } from "../../rpc/server.ts";
import { acceptsGzip, prefersJson } from "./accept.ts";
import { errorPage, errorsPage, missingPage } from "./error-page.ts";
import { referencePage, referenceScript, startScript } from "./reference.ts";
import { stylesheet } from "./style.ts";

export interface HtmlPagesOptions {
  rpc: Rpc;
  /** The OpenAPI document as JSON text; asked for once, when somebody wants it. */
  document(): string;
  /** Put before the addresses in the pages. */
  publicUrl: string;
}

/** What browsers may do with what they get. */
const guards = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

const closed = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A page about an error has one style sheet and nothing else. */
const errorPolicy = `${closed}; style-src 'self'; img-src data:`;
/** Scalar writes style elements, and its icons and code fonts are in its own script. No origin but ours is in it. */
const referencePolicy = [
  closed,
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
].join("; ");

/** What people read: the reference with its document, and the pages to which the `type` of an error leads. */
export function addPages(app: FastifyInstance<Server>, { rpc, document, publicUrl }: HtmlPagesOptions): void {
  const openapi = new SharedContent(async () => Buffer.from(document()));
  app.get("/openapi.json", (request, reply) => openapi.give(request, reply, "application/json", closed));
  app.get("/favicon.ico", (_request, reply) => {
    reply.header("cache-control", "public, max-age=86400");
    return give(reply, "image/svg+xml", favicon, closed);
  });
  addReference(app);
  addErrors(app, rpc, publicUrl);
}

function addReference(app: FastifyInstance<Server>): void {
  const script = new SharedContent(referenceScript);
  app.get("/reference", (_request, reply) => give(reply, html, referencePage, referencePolicy));
  // What the page loads is relative to its address without the slash.
  app.get("/reference/", (_request, reply) => reply.redirect("../reference", 308));
  app.get("/reference/start.js", (_request, reply) => give(reply, javascript, startScript, closed));
  app.get("/reference/scalar.js", (request, reply) => {
    reply.header("cache-control", "public, max-age=86400");
    return script.give(request, reply, javascript, closed);
  });
}

/** Large content: made when it is first asked for, plain and compressed, and shared by all responses. */
class SharedContent {
  readonly #make: () => Promise<Buffer>;
  #made: Promise<{ plain: Buffer; compressed: Buffer }> | undefined;

  constructor(make: () => Promise<Buffer>) {
    this.#make = make;
  }

  async give(request: FastifyRequest, reply: FastifyReply, type: string, policy: string): Promise<FastifyReply> {
    this.#made ??= this.#compress().catch((error: unknown) => {
      this.#made = undefined;
      throw error;
    });
    const { plain, compressed } = await this.#made;
    reply.header("vary", "accept-encoding");
    if (!acceptsGzip(request.headers["accept-encoding"] as string | undefined)) return give(reply, type, plain, policy);
    return give(reply.header("content-encoding", "gzip"), type, compressed, policy);
  }

  async #compress(): Promise<{ plain: Buffer; compressed: Buffer }> {
    const plain = await this.#make();
    return { plain, compressed: await promisify(gzip)(plain) };
  }
}

function addErrors(app: FastifyInstance<Server>, rpc: Rpc, publicUrl: string): void {
  const links = { publicUrl };
  const codes = Object.keys(problems) as ProblemCode[];
  const told = (code: ProblemCode) => ({ ...problems[code], type: `${publicUrl}/errors/${problems[code].type}` });
  const either = (path: string, json: () => RpcResponse, page: () => string) =>
    app.get(path, (request, reply) => {
      reply.header("vary", "accept");
      const answer = json();
      reply.status(answer.status).header("x-request-id", answer.requestId);
      if (prefersJson(request.headers.accept)) return give(reply, "application/json", answer.body, closed);
      return give(reply, html, page(), errorPolicy);
    });

  either(
    "/errors",
    () => rpc.plain(codes.map(told)),
    () => errorsPage(links),
  );
  for (const code of codes) {
    either(
      `/errors/${problems[code].type}`,
      () => rpc.plain(told(code)),
      () => errorPage(code, links),
    );
  }
  app.get("/errors/style.css", (_request, reply) => give(reply, "text/css; charset=utf-8", stylesheet, closed));
  either(
    "/errors/*",
    () => rpc.refuse(new Problem("route_not_found", "There is no such error. All of them are at /errors.")),
    () => missingPage(links),
  );
}

const html = "text/html; charset=utf-8";
const javascript = "text/javascript; charset=utf-8";

const favicon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="5" cy="8" r="3" fill="none" stroke="#246" ' +
  'stroke-width="2"/><path d="M8 8h7m-2 0v3m-2-3v2" fill="none" stroke="#246" stroke-width="2"/></svg>';

function give(reply: FastifyReply, type: string, content: string | Buffer, policy: string): FastifyReply {
  return reply
    .headers({ ...guards, "content-security-policy": policy, "content-type": type })
    .send(typeof content === "string" ? Buffer.from(content) : content);
}
