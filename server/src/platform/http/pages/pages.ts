import type { Server } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Clock, Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { Problem, type ProblemCode, problems } from "../../rpc/problems.ts";
import type { RpcCalls, RpcResponse } from "../../rpc/server.ts";
import type { RouteGroups } from "../route-groups.ts";
import { prefersJson } from "./accept.ts";
import { errorPage, errorsPage, missingPage } from "./error-page.ts";
import { sendContent } from "./send-content.ts";
import { SharedContent } from "./shared-content.ts";
import { stylesheet } from "./style.ts";

/** A text that changes from time to time. */
export interface ChangingText {
  /** Changes with the text. Called for every request. */
  version(): unknown;
  /** The present text. */
  text(): Promise<string>;
}

export interface HtmlPagesOptions {
  rpc: RpcCalls;
  /** The OpenAPI document as JSON text. */
  document: ChangingText;
  /** Prefix of the addresses in the pages. */
  publicUrl: string;
  /** Whom to tell about a vulnerability, as URIs. Empty: there is no file that says it. */
  securityContact: readonly string[];
  clock: Clock;
}

const DAY: Milliseconds = 86_400_000;
const SECURITY_TEXT_LIFE = 180 * DAY;

const closed = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Error pages load one style sheet and nothing else. */
const errorPolicy = `${closed}; style-src 'self'; img-src data:`;

/** Adds what is made of the operations and their problems: the OpenAPI document, and a page for the `type` of each error. */
export function addPages(
  app: FastifyInstance<Server>,
  groups: RouteGroups,
  { rpc, document, publicUrl, securityContact, clock }: HtmlPagesOptions,
): void {
  const openapi = new SharedContent(async () => Buffer.from(await document.text()), document.version);
  app.get("/openapi.json", (request, reply) => openapi.send(request, reply, "application/json", closed));
  app.get("/favicon.ico", (_request, reply) => {
    reply.header("cache-control", "public, max-age=86400");
    return sendContent(reply, "image/svg+xml", favicon, closed);
  });
  if (securityContact.length > 0) {
    app.get("/.well-known/security.txt", (_request, reply) => {
      reply.header("cache-control", "public, max-age=86400");
      return sendContent(
        reply,
        "text/plain; charset=utf-8",
        securityText(securityContact, publicUrl, clock.now()),
        closed,
      );
    });
  }
  addErrors(app, groups, rpc, publicUrl);
}

/**
 * The file of RFC 9116. It expires half a year after it is read: who runs the service with this contact confirms it, and a
 * copy grows old.
 */
function securityText(contacts: readonly string[], publicUrl: string, now: Instant): string {
  const today = now - (now % DAY);
  const lines = [
    ...contacts.map((contact) => `Contact: ${contact}`),
    `Expires: ${new Date(today + SECURITY_TEXT_LIFE).toISOString().replace(".000", "")}`,
    ...(publicUrl.startsWith("https:") ? [`Canonical: ${publicUrl}/.well-known/security.txt`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function addErrors(app: FastifyInstance<Server>, groups: RouteGroups, rpc: RpcCalls, publicUrl: string): void {
  const links = { publicUrl };
  const codes = Object.keys(problems) as ProblemCode[];
  const kindOf = (code: ProblemCode) => ({ ...problems[code], type: `${publicUrl}/errors/${problems[code].type}` });
  const pageOrJson = (request: FastifyRequest, reply: FastifyReply, answer: RpcResponse, page: () => string) => {
    reply.header("vary", "accept");
    reply.status(answer.status).header("x-request-id", answer.requestId);
    if (prefersJson(request.headers.accept)) return sendContent(reply, "application/json", answer.body, closed);
    return sendContent(reply, html, page(), errorPolicy);
  };

  app.get("/errors", (request, reply) =>
    pageOrJson(request, reply, rpc.plain(codes.map(kindOf)), () => errorsPage(links)),
  );
  app.get("/errors/style.css", (_request, reply) => sendContent(reply, "text/css; charset=utf-8", stylesheet, closed));
  const byType = new Map(codes.map((code) => [problems[code].type, code]));
  groups.add("GET", "/errors/", byType, {
    answer: (code, request, reply) => pageOrJson(request, reply, rpc.plain(kindOf(code)), () => errorPage(code, links)),
    answerOther(request, reply) {
      const missing = new Problem("route_not_found", "There is no such error. All of them are at /errors.");
      return pageOrJson(request, reply, rpc.reject(missing), () => missingPage(links));
    },
  });
}

const html = "text/html; charset=utf-8";

const favicon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="5" cy="8" r="3" fill="none" stroke="#246" ' +
  'stroke-width="2"/><path d="M8 8h7m-2 0v3m-2-3v2" fill="none" stroke="#246" stroke-width="2"/></svg>';
