import { z } from "zod";
import { type Example, type Operation, problemsOf } from "./operation.ts";
import { commonProblems, type ProblemCode, problems } from "./problems.ts";

type Json = Readonly<Record<string, unknown>>;

export interface DocumentOptions {
  operations: readonly Operation[];
  /** What each namespace is about, by its name, in the order of the reference. */
  namespaces: Readonly<Record<string, string>>;
  version: string;
  /** Where the service is reached; empty: where the document comes from. */
  publicUrl: string;
}

const introduction = `
Every operation is \`POST /v2/<namespace>.<operation>\` with a JSON object as its body, or an array where the
operation says so, and the header \`Content-Type: application/json\`. Root keys travel as
\`Authorization: Bearer <root key>\`.

An answer holds \`meta.requestId\` and either \`data\` or \`error\`. \`error.type\` is the address of a page that explains
the problem, its causes and its remedy. Properties may be added to answers, so ignore those that you don't know; requests
are refused when they hold one that is not known here.

Where a workspace may only make so many requests a minute, the answers to its calls carry \`RateLimit-Limit\`,
\`RateLimit-Remaining\` and \`RateLimit-Reset\`.

Times are Unix times in milliseconds, durations are milliseconds, amounts are integers. Bodies are UTF-8 and not
compressed. What JSON parsers change silently is refused: numbers that a double does not hold, half of a surrogate pair,
the property \`__proto__\`, and the same property twice in one object.
`.trim();

/** The OpenAPI 3.1 document of these operations: everything in it comes from their declarations. */
export function openApiDocument({ operations, namespaces, version, publicUrl }: DocumentOptions): Json {
  const components = new Components(publicUrl);
  const paths = Object.fromEntries(
    operations.map((operation) => [`/v2/${operation.name}`, { post: describeOperation(operation, components) }]),
  );
  return {
    openapi: "3.1.1",
    info: {
      title: "Latchkey",
      summary: "Issues, verifies and limits API keys.",
      description: introduction,
      version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: publicUrl === "" ? "/" : publicUrl }],
    security: [{ rootKey: [] }],
    tags: Object.entries(namespaces).map(([name, description]) => ({ name, description })),
    paths,
    components: components.json(),
  };
}

function describeOperation(operation: Operation, components: Components): Json {
  const { name, kind, declaration } = operation;
  const permissions = declaration.permissions.map((permission: string) => `\`${permission}\``).join(", ");
  const named = nameExamples(declaration.examples);
  const paged = kind === "query" && operation.paged;
  return {
    operationId: name,
    tags: [name.slice(0, name.indexOf("."))],
    summary: declaration.summary,
    description: `${declaration.description}\n\nPermissions of the root key: ${permissions}`,
    ...(kind === "metered" && operation.anonymous && { security: [{ rootKey: [] }, {}] }),
    requestBody: {
      required: true,
      content: {
        "application/json": {
          schema: components.schema(declaration.input, "input"),
          examples: mapValues(
            named.filter(([, example]) => "output" in example),
            ({ summary, input }) => ({ summary, value: input }),
          ),
          // Apart, so that no tool shows a request that is refused as the sample of the operation.
          ...(named.some(([, example]) => "problem" in example) && {
            "x-refused-examples": mapValues(
              named.filter(([, example]) => "problem" in example),
              (example) => ({ summary: example.summary, value: example.input }),
            ),
          }),
        },
      },
    },
    responses: {
      200: {
        description: "The answer.",
        headers: { "X-Request-Id": reference("headers", "X-Request-Id") },
        content: {
          "application/json": {
            schema: envelope(components.schema(declaration.output, "output"), paged),
            examples: mapValues(
              named.filter(([, example]) => "output" in example),
              (example) => ({
                summary: example.summary,
                value: {
                  meta: exampleMeta,
                  data: (example as { output: unknown }).output,
                  ...(paged && { pagination: { hasMore: false } }),
                },
              }),
            ),
          },
        },
      },
      ...errorResponses(operation, named, components),
    },
  };
}

type Named = readonly (readonly [name: string, example: Example])[];

/** Examples by a name made of their summary, which pairs a request with its response. */
function nameExamples(examples: readonly Example[]): Named {
  return examples.map((example) => [
    example.summary
      .toLowerCase()
      .replaceAll(/[^a-z]+/g, "-")
      .replace(/-$/, ""),
    example,
  ]);
}

const exampleMeta = { requestId: "req_4gQm9VnXa" };

function envelope(data: Json, paged: boolean): Json {
  return {
    type: "object",
    properties: {
      meta: reference("schemas", "Meta"),
      data,
      ...(paged && { pagination: reference("schemas", "Pagination") }),
    },
    required: ["meta", "data", ...(paged ? ["pagination"] : [])],
  };
}

/** What may go wrong, by status. Statuses to which the operation adds nothing of its own are shared by all. */
function errorResponses(operation: Operation, named: Named, components: Components): Json {
  const { name } = operation;
  const codes = problemsOf(operation);
  const statuses = [...new Set(codes.map((code) => problems[code].status))].sort((a, b) => a - b);
  const told = named.filter(([, example]) => "problem" in example) as [string, Example & { problem: ProblemCode }][];
  return Object.fromEntries(
    statuses.map((status) => {
      const here = codes.filter((code) => problems[code].status === status);
      const examples = told.filter(([, { problem }]) => problems[problem].status === status);
      const own =
        examples.length > 0 ||
        codes.some((code) => here.includes(code) && !(commonProblems as readonly ProblemCode[]).includes(code));
      const mediaType = errorMediaType(status, name);
      return [
        status,
        own || mediaType !== errorMediaType(status)
          ? components.errorResponse(status, here, examples, mediaType)
          : components.sharedErrorResponse(status, here),
      ];
    }),
  );
}

/** The clients recognise these two only as `application/problem+json`. */
function errorMediaType(status: number, name?: string): string {
  return status === 429 || name === "identities.deleteIdentity" ? "application/problem+json" : "application/json";
}

/** What several operations share, gathered while they are described. */
class Components {
  readonly #publicUrl: string;
  readonly #schemas: Record<string, Json> = {};
  readonly #responses: Record<string, Json> = {};

  constructor(publicUrl: string) {
    this.#publicUrl = publicUrl;
  }

  json(): Json {
    return {
      securitySchemes: {
        rootKey: {
          type: "http",
          scheme: "bearer",
          description: "A root key of the service, such as `latchkey root-key create` makes.",
        },
      },
      headers,
      responses: {
        ...this.#responses,
        NotFound: this.errorResponse(404, ["route_not_found"], [], "application/json"),
        MethodNotAllowed: this.errorResponse(405, ["method_not_allowed"], [], "application/json"),
      },
      schemas: { ...this.#schemas, ...envelopeSchemas },
    };
  }

  /** A schema as JSON Schema; what has an id becomes a component of that name. */
  schema(schema: z.ZodType, io: "input" | "output"): Json {
    const {
      $schema: _,
      $defs = {},
      ...own
    } = z.toJSONSchema(schema, { io, override: (node) => refine(node.jsonSchema, io) });
    for (const [name, definition] of Object.entries($defs)) {
      const found = relocate(definition);
      const known = this.#schemas[name];
      if (known && JSON.stringify(known) !== JSON.stringify(found)) {
        throw new Error(`Two schemas have the id ${name}: give each its own, and different ones to input and output.`);
      }
      this.#schemas[name] = found;
    }
    return relocate(own);
  }

  /** The response of one status with each of its problems, and those examples that the operation itself gives. */
  errorResponse(
    status: number,
    codes: readonly ProblemCode[],
    named: readonly [string, Example & { problem: ProblemCode }][],
    mediaType: string,
  ): Json {
    const shown = new Set(named.map(([, { problem }]) => problem));
    const generic = codes.filter((code) => !shown.has(code));
    return {
      description: codes.map((code) => this.#describe(code)).join("\n"),
      headers: mapValues(
        ["X-Request-Id", ...(headersOfStatus[status] ?? [])].map((name) => [name, name] as const),
        (name) => reference("headers", name),
      ),
      content: {
        [mediaType]: {
          schema: reference("schemas", "Error"),
          examples: {
            ...mapValues(named, (example) => ({
              summary: example.summary,
              value: this.#error(example.problem, "detail" in example ? example.detail : undefined),
            })),
            ...mapValues(
              generic.map((code) => [code, code] as const),
              (code) => ({ summary: code.replaceAll("_", " "), value: this.#error(code) }),
            ),
          },
        },
      },
    };
  }

  /** The same, kept once. */
  sharedErrorResponse(status: number, codes: readonly ProblemCode[]): Json {
    const name = sharedNames[status] ?? `Status${status}`;
    this.#responses[name] ??= this.errorResponse(status, codes, [], errorMediaType(status));
    return reference("responses", name);
  }

  #describe(code: ProblemCode): string {
    const { type, meaning } = problems[code];
    return `- [\`${type}\`](${this.#publicUrl}/errors/${type}): ${meaning}`;
  }

  #error(code: ProblemCode, detail: string = problems[code].detail): Json {
    const { status, title, type } = problems[code];
    return {
      meta: exampleMeta,
      error: {
        title,
        detail,
        status,
        type: `${this.#publicUrl}/errors/${type}`,
        ...((status === 400 || status === 408 || status === 413) && { errors: [] }),
      },
    };
  }
}

const sharedNames: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  408: "RequestTimeout",
  413: "BodyTooLarge",
  415: "UnsupportedMediaType",
  429: "TooManyRequests",
  500: "InternalServerError",
  503: "ServiceUnavailable",
};

const headers = {
  "X-Request-Id": { description: "The same as `meta.requestId`.", schema: { type: "string" } },
  "WWW-Authenticate": { description: "The scheme in which root keys are sent.", schema: { const: "Bearer" } },
  Allow: { description: "The methods to which this address answers.", schema: { type: "string" } },
  "Retry-After": { description: "Seconds after which to try again.", schema: { type: "integer", minimum: 0 } },
  "RateLimit-Limit": {
    description: "Requests a minute that the workspace may make.",
    schema: { type: "integer", minimum: 1 },
  },
  "RateLimit-Remaining": { description: "How many of them are left.", schema: { type: "integer", minimum: 0 } },
  "RateLimit-Reset": { description: "Seconds until the minute ends.", schema: { type: "integer", minimum: 0 } },
};

const headersOfStatus: Readonly<Record<number, readonly (keyof typeof headers)[]>> = {
  401: ["WWW-Authenticate"],
  405: ["Allow"],
  429: ["Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
  503: ["Retry-After"],
};

const envelopeSchemas: Readonly<Record<string, Json>> = {
  Meta: {
    type: "object",
    description: "About the request.",
    properties: { requestId: { type: "string", description: "Names the request in the service's log." } },
    required: ["requestId"],
  },
  Pagination: {
    type: "object",
    description: "Where a list goes on.",
    properties: {
      hasMore: { type: "boolean", description: "Whether there is another page." },
      cursor: { type: "string", description: "Send it along to get the next page. Present when there is one." },
    },
    required: ["hasMore"],
  },
  InputError: {
    type: "object",
    description: "One thing that is wrong with a request.",
    properties: {
      location: { type: "string", description: "Where, as a path into the schema: `/properties/name/maxLength`." },
      message: { type: "string" },
      fix: { type: "string", description: "What would remedy it." },
    },
    required: ["location", "message"],
  },
  Problem: {
    type: "object",
    description: "Why a call was not answered, with the members of RFC 9457.",
    properties: {
      title: { type: "string" },
      detail: { type: "string", description: "What was wrong with this request, and what to do." },
      status: { type: "integer", description: "The HTTP status." },
      type: { type: "string", format: "uri-reference", description: "Names the problem, and is a page about it." },
      errors: {
        type: "array",
        items: { $ref: "#/components/schemas/InputError" },
        description: "With the statuses 400, 408 and 413: each single mistake.",
      },
    },
    required: ["title", "detail", "status", "type"],
  },
  Error: {
    type: "object",
    description: "The body of every error.",
    properties: { meta: { $ref: "#/components/schemas/Meta" }, error: { $ref: "#/components/schemas/Problem" } },
    required: ["meta", "error"],
  },
};

function reference(kind: "schemas" | "headers" | "responses", name: string): Json {
  return { $ref: `#/components/${kind}/${name}` };
}

/** Makes what zod prints easier to read, without changing what it accepts. */
function refine(node: z.core.JSONSchema.BaseSchema, io: "input" | "output"): void {
  // Keys of an object are texts anyway.
  if (node.propertyNames) delete node.propertyNames;
  if (isEmpty(node.additionalProperties)) node.additionalProperties = true;
  if (node.type === "integer") {
    node.format = "int64";
    if (io === "output") {
      if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
    }
  }
  // A client that is older than the service meets properties that it does not know.
  if (io === "output" && node.additionalProperties === false) delete node.additionalProperties;
  const [inner, absent, ...others] = (node.anyOf ?? []) as z.core.JSONSchema.BaseSchema[];
  // Every keyword but these speaks of one type only, so null may stand beside it in the list of types.
  if (absent?.type === "null" && others.length === 0 && typeof inner?.type === "string" && !inner.enum) {
    delete node.anyOf;
    refine(inner, io);
    Object.assign(node, { ...inner, ...node, type: [inner.type, "null"] });
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** The same schema with its references leading to the components of the document. */
function relocate(schema: object): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', '"$ref":"#/components/schemas/'));
}

function mapValues<T>(entries: readonly (readonly [string, T])[], to: (value: T) => unknown): Json {
  return Object.fromEntries(entries.map(([name, value]) => [name, to(value)]));
}
