import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import type { FastifyReply, FastifyRequest } from "fastify";
import { digest } from "../../../../engine/src/crypto/digest.ts";
import { acceptsCoding } from "../../platform/http/pages/accept.ts";
import { sendContent } from "../../platform/http/pages/send-content.ts";
import type { AddRoutes, AnswerUnrouted } from "../../platform/http/routes.ts";

const INDEX = "index.html";

/** The build gives the files in this folder names that change with their content. */
const ASSETS = "assets/";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};

/** Scripts, styles and calls of the dashboard itself, and nothing else. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Of scripts and styles, which the policy of their page governs. */
const closed = "default-src 'none'";

/** Paths of the service, below which no page of the dashboard is. */
const RESERVED = /^\/(?:v2|dashboard|portal|auth|errors|health|metrics|reference|assets)(?:\/|$)/;

/** The last part of a page's path: no dot, because a file that is missing is no page. */
const PAGE = /^(?:\/[A-Za-z0-9_~-]{1,255}){1,6}\/?$/;

interface File {
  readonly type: string;
  readonly etag: string;
  readonly isHashed: boolean;
  /** The content by its coding, the best one first. */
  readonly contents: readonly (readonly [coding: "br" | "gzip" | "identity", content: Buffer])[];
}

/**
 * The files of the dashboard, read at the start. A request selects one of them by its path, so no path can lead out of
 * their folder.
 */
export class DashboardFiles {
  readonly #files: ReadonlyMap<string, File>;

  private constructor(files: ReadonlyMap<string, File>) {
    this.#files = files;
  }

  /** Undefined if the folder has no dashboard. */
  static read(folder: string): DashboardFiles | undefined {
    if (!existsSync(join(folder, INDEX))) return undefined;
    const names = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"));
    const all = new Set(names);
    const files = names.filter((name) => Object.hasOwn(TYPES, extname(name)));
    return new DashboardFiles(new Map(files.map((name) => [name, readFile(folder, name, all)])));
  }

  /** The paths of the files. The pages of the dashboard are answered by `sendPage`. */
  readonly addRoutes: AddRoutes = (app, { groups }) => {
    const hashed = new Map<string, File>();
    for (const [name, file] of this.#files) {
      if (file.isHashed) hashed.set(name.slice(ASSETS.length), file);
      else app.get(name === INDEX ? "/" : `/${name}`, (request, reply) => sendFile(request, reply, file));
    }
    groups.add("GET", `/${ASSETS}`, hashed, { answer: (file, request, reply) => sendFile(request, reply, file) });
  };

  /** Answers a request for a page that the dashboard shows itself; undefined if the request is for something else. */
  readonly sendPage: AnswerUnrouted = (request, reply) => {
    const { method, url, headers } = request;
    const path = url.split("?")[0]!;
    const isPage =
      (method === "GET" || method === "HEAD") &&
      headers.accept?.includes("text/html") === true &&
      PAGE.test(path) &&
      !RESERVED.test(path);
    return isPage ? sendFile(request, reply.status(200), this.#files.get(INDEX)!) : undefined;
  };
}

function readFile(folder: string, name: string, all: ReadonlySet<string>): File {
  const plain = readFileSync(join(folder, name));
  const compressed = ([coding, extension]: readonly ["br" | "gzip", string]) =>
    all.has(name + extension) ? [[coding, readFileSync(join(folder, name + extension))] as const] : [];
  return {
    type: TYPES[extname(name)]!,
    etag: digest(plain.toString("latin1")),
    isHashed: name.startsWith(ASSETS),
    contents: [...compressed(["br", ".br"]), ...compressed(["gzip", ".gz"]), ["identity", plain]],
  };
}

function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, etag, isHashed, contents }: File,
): FastifyReply {
  const accepted = request.headers["accept-encoding"] as string | undefined;
  const [coding, content] = contents.find(([one]) => one === "identity" || acceptsCoding(accepted, one))!;
  // Each coding is a representation of its own (RFC 9110, section 8.8.3.3).
  const tag = `"${etag}-${coding}"`;
  reply.headers({
    etag: tag,
    vary: "accept-encoding",
    "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
  });
  const known = request.headers["if-none-match"]?.split(",").map((one) => one.trim().replace(/^W\//, ""));
  if (known?.includes(tag) || known?.includes("*")) return reply.status(304).send();
  if (coding !== "identity") reply.header("content-encoding", coding);
  return sendContent(reply, type, content, /^text\/(?:javascript|css)/.test(type) ? closed : policy);
}
