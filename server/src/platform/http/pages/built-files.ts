import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { digest } from "../../../../../engine/src/crypto/digest.ts";
import type { RouteGroups } from "../route-groups.ts";
import type { AddRoutes, AnswerUnrouted } from "../routes.ts";
import { acceptsCoding, prefers } from "./accept.ts";
import { sendContent } from "./send-content.ts";

/** The page of the dashboard. */
const DASHBOARD = "index.html";

/** The paths of the dashboard's pages, such as `/apis/$apiId`. */
const ROUTES = "pages.json";

/** The folder of files whose names change with their content. */
const ASSETS = "assets/";

/** Folders of printed pages: `docs/limits.html` is at `/docs/limits`, `docs/index.html` at `/docs`. */
const PAGES = ["docs", "reference"] as const;

/** The page for addresses below `/docs` that do not exist. */
const MISSING = "docs/404.html";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};

/** Of pages: everything comes from the service itself, and images can be in the page too. */
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

/** Of all other files: where a page uses one, the policy of the page governs. */
const closed = "default-src 'none'";

/** Paths of the service, below which no page of the dashboard is. */
const RESERVED = /^\/(?:v2|dashboard|portal|auth|docs|errors|health|metrics|reference|assets)(?:\/|$)/;

/** A part of a page's path: without a dot, because a file that is missing is no page. */
const PART = "[A-Za-z0-9_~-]{1,255}";
const PAGE = new RegExp(`^(?:/${PART}){1,6}/?$`);

const codings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

/**
 * The files of the dashboard, of the documents and of the reference. The names are read at the start, the contents when
 * they are requested. A request selects one of the names, so no path can lead out of the folder.
 */
export class BuiltFiles {
  readonly #files: ReadonlyMap<string, BuiltFile>;
  readonly #dashboard: BuiltFile;
  readonly #routes: RegExp;

  private constructor(files: ReadonlyMap<string, BuiltFile>, dashboard: BuiltFile, routes: readonly string[]) {
    this.#files = files;
    this.#dashboard = dashboard;
    this.#routes = anyOf(routes);
  }

  /** Undefined if nothing is built in the folder. */
  static read(folder: string): BuiltFiles | undefined {
    const names = namesIn(folder);
    const all = new Set(names);
    const files = new Set(names.map((name) => name.replace(/\.(?:br|gz)$/, "")));
    const given = [...files].filter((name) => Object.hasOwn(TYPES, extname(name)) && name !== ROUTES);
    const read = new Map(given.map((name) => [name, new BuiltFile(folder, name, all)]));
    const dashboard = read.get(DASHBOARD);
    if (!dashboard || !all.has(ROUTES)) return undefined;
    return new BuiltFiles(read, dashboard, JSON.parse(readFileSync(join(folder, ROUTES), "utf8")));
  }

  /** The paths of all files but the dashboard's page. */
  readonly addRoutes: AddRoutes = (app, { groups }) => {
    const hashed = new Map<string, BuiltFile>();
    for (const [name, file] of this.#files) {
      if (name.startsWith(ASSETS)) hashed.set(name.slice(ASSETS.length), file);
      // The others at the root are few: icons, and the index for language models.
      else if (!name.includes("/") && name !== DASHBOARD) {
        app.get(`/${name}`, (request, reply) => file.send(request, reply));
      }
    }
    const answer = (file: BuiltFile, request: FastifyRequest, reply: FastifyReply) => file.send(request, reply);
    groups.add("GET", `/${ASSETS}`, hashed, { answer });
    for (const folder of PAGES) this.#addPages(folder, app, groups);
  };

  /** The page of the dashboard at `/`. Its other addresses are answered by `sendDashboard`. */
  readonly addDashboard: AddRoutes = (app) => {
    app.get("/", (request, reply) => this.#dashboard.send(request, reply));
  };

  /** `/` of a service without the dashboard. Relative, for one under a path of a proxy; not for ever, as the setting can change. */
  readonly addWayToDocs: AddRoutes = (app) => {
    app.get("/", (_request, reply) => reply.redirect("docs", 302));
  };

  /**
   * Answers a request of a browser for a page of the dashboard; undefined if the request is for something else. At the path of
   * a page that does not exist, the dashboard says so, with the status 404.
   */
  readonly sendDashboard: AnswerUnrouted = (request, reply) => {
    const { method, url, headers } = request;
    const [path = ""] = url.split("?");
    const isForPage =
      (method === "GET" || method === "HEAD") &&
      headers.accept?.includes("text/html") === true &&
      PAGE.test(path) &&
      !RESERVED.test(path);
    return isForPage ? this.#dashboard.send(request, reply.status(this.#routes.test(path) ? 200 : 404)) : undefined;
  };

  #addPages(folder: (typeof PAGES)[number], app: FastifyInstance, groups: RouteGroups): void {
    const index = this.#files.get(`${folder}/index.html`);
    if (!index) return;
    const pages = new Map<string, Page>();
    for (const [name, file] of this.#files) {
      if (!name.startsWith(`${folder}/`) || file === index || name === MISSING) continue;
      const path = name.slice(folder.length + 1);
      const stem = path.replace(/\.html$/, "");
      if (stem === path) pages.set(path, { file });
      else pages.set(stem, { file, markdown: this.#files.get(`${folder}/${stem}.md`) });
    }
    const send = ({ file, markdown }: Page, request: FastifyRequest, reply: FastifyReply) => {
      if (!markdown) return file.send(request, reply);
      const chosen = prefers(request.headers.accept, ["text/markdown"]) ? markdown : file;
      return chosen.send(request, reply, "accept, ");
    };
    const indexPage = { file: index, markdown: this.#files.get(`${folder}/README.md`) };
    app.get(`/${folder}`, (request, reply) => send(indexPage, request, reply));
    // The pages load their files relative to their address.
    app.get(`/${folder}/`, (_request, reply) => reply.redirect(`../${folder}`, 308));
    const missing = this.#files.get(MISSING);
    groups.add("GET", `/${folder}/`, pages, {
      answer: send,
      answerOther(request, reply) {
        // Its files are one level above.
        const isBeside = /^\/[a-z]+\/[^/?]+(?:\?|$)/.test(request.url);
        const isReader = request.headers.accept?.includes("text/html") === true;
        return missing && isBeside && isReader ? missing.send(request, reply.status(404)) : reply.callNotFound();
      },
    });
  }
}

/** Matches the path of every page, with or without a slash at the end. */
function anyOf(routes: readonly string[]): RegExp {
  return new RegExp(`^(?:${routes.map((route) => route.replaceAll(/\$\w+/g, PART)).join("|")})/?$`);
}

/** A printed page, and the same as Markdown. */
interface Page {
  readonly file: BuiltFile;
  readonly markdown?: BuiltFile | undefined;
}

/** A file of the build in its codings. Texts are there in all of them but the plain one. */
class BuiltFile {
  readonly #type: string;
  readonly #isHashed: boolean;
  /** The best one first. */
  readonly #compressed: readonly Content[];
  readonly #plain: Content;

  constructor(folder: string, name: string, all: ReadonlySet<string>) {
    this.#type = TYPES[extname(name)] ?? "application/octet-stream";
    this.#isHashed = name.startsWith(ASSETS);
    this.#plain = new Content("identity", join(folder, name), !all.has(name));
    this.#compressed = codings
      .filter(([, extension]) => all.has(name + extension))
      .map(([coding, extension]) => new Content(coding, join(folder, name + extension)));
  }

  /** `vary`: other headers of the request that select the file. */
  async send(request: FastifyRequest, reply: FastifyReply, vary = ""): Promise<FastifyReply> {
    const accepted = request.headers["accept-encoding"] as string | undefined;
    const content = this.#compressed.find(({ coding }) => acceptsCoding(accepted, coding)) ?? this.#plain;
    // Each coding is a representation of its own (RFC 9110, section 8.8.3.3).
    const tag = await content.tag();
    reply.headers({
      vary: `${vary}accept-encoding`,
      "cache-control": this.#isHashed ? "public, max-age=31536000, immutable" : "no-cache",
      "cross-origin-resource-policy": "same-origin",
    });
    const isPage = this.#type.startsWith("text/html");
    // Documents have openers; the headers of each script count towards the first load.
    if (isPage) reply.header("cross-origin-opener-policy", "same-origin");
    if (reply.statusCode === 200) {
      reply.header("etag", tag);
      const known = request.headers["if-none-match"]?.split(",").map((one) => one.trim().replace(/^W\//, ""));
      if (known?.includes(tag) || known?.includes("*")) return reply.status(304).send();
    }
    if (content.coding !== "identity") reply.header("content-encoding", content.coding);
    return sendContent(reply, this.#type, await content.read(), isPage ? policy : closed);
  }
}

/** The content of a file in one coding. */
class Content {
  readonly coding: "br" | "gzip" | "identity";
  readonly #path: string;
  readonly #isPacked: boolean;
  #tag: string | undefined;
  #reading: Promise<Buffer> | undefined;
  /**
   * What is being sent. All answers share one copy, so that clients that read slowly cannot fill the memory; after the last
   * one the garbage collector takes it.
   */
  #sent: WeakRef<Buffer> | undefined;

  /** `isPacked`: there is only the `.gz` of the file. */
  constructor(coding: Content["coding"], path: string, isPacked = false) {
    this.coding = coding;
    this.#path = path;
    this.#isPacked = isPacked;
  }

  /** The entity tag. Files do not change while the service runs. */
  async tag(): Promise<string> {
    this.#tag ??= `"${digest((await this.read()).toString("latin1"))}-${this.coding}"`;
    return this.#tag;
  }

  async read(): Promise<Buffer> {
    const sent = this.#sent?.deref();
    if (sent) return sent;
    this.#reading ??= this.#load().finally(() => {
      this.#reading = undefined;
    });
    const content = await this.#reading;
    this.#sent = new WeakRef(content);
    return content;
  }

  async #load(): Promise<Buffer> {
    return this.#isPacked ? promisify(gunzip)(await readFile(`${this.#path}.gz`)) : readFile(this.#path);
  }
}

/** The names of all files below a folder, with slashes; none if there is no such folder. */
function namesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"));
}
