import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

type Method = "GET" | "POST";
type Request = FastifyRequest;

interface Group {
  method: Method;
  prefix: string;
  names: ReadonlyMap<string, unknown>;
}

interface Handlers<Member> {
  answer(member: Member, request: Request, reply: FastifyReply): unknown;
  /** Answers other paths with the prefix; by default as paths without a route. */
  answerOther?(request: Request, reply: FastifyReply): unknown;
  /** Gets the errors of the framework and of `answer`; by default the handler of the app does. */
  fail?(error: Error & { code?: string }, member: Member, request: Request, reply: FastifyReply): unknown;
}

/**
 * Routes whose paths differ in their end only. The framework has one route for all of a group: hundreds of its routes
 * would take ten megabytes and a tenth of the start.
 */
export class RouteGroups {
  readonly #app: FastifyInstance;
  readonly #groups: Group[] = [];

  constructor(app: FastifyInstance) {
    this.#app = app;
  }

  /** Adds the paths that are `prefix` and the name of a member. */
  add<Member>(
    method: Method,
    prefix: string,
    members: ReadonlyMap<string, Member>,
    { answer, answerOther = (_, reply) => reply.callNotFound(), fail }: Handlers<Member>,
  ): void {
    this.#groups.push({ method, prefix, names: members });
    const memberOf = ({ params }: Request) => members.get((params as { "*": string })["*"]);
    this.#app.route({
      method,
      url: `${prefix}*`,
      handler(request, reply) {
        const member = memberOf(request);
        return member === undefined ? answerOther(request, reply) : answer(member, request, reply);
      },
      ...(fail && {
        errorHandler(error: Error, request: Request, reply: FastifyReply) {
          const member = memberOf(request);
          if (member === undefined) throw error;
          return fail(error, member, request, reply);
        },
      }),
    });
  }

  /** Whether there is a route for this path, alone or in a group. */
  has(method: Method, path: string): boolean {
    return this.#app.hasRoute({ method, url: path }) || this.#groups.some((group) => isIn(group, method, path));
  }

  /** The path of the route that answers a request; empty if it is none of a known path, which can contain secrets. */
  pathOf({ method, url, routeOptions }: Request): string {
    const path = url.split("?")[0]!;
    return this.#groups.some((group) => isIn(group, method, path)) ? path : (routeOptions.url ?? "");
  }
}

function isIn({ method, prefix, names }: Group, wanted: string, path: string): boolean {
  return method === wanted && path.startsWith(prefix) && names.has(path.slice(prefix.length));
}
