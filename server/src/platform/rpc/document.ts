import { z } from "zod";
import { eventTypes } from "../store/events/types.ts";
import { type Example, type Operation, problemsOf } from "./operation.ts";
import { commonProblems, type ProblemCode, problems } from "./problems.ts";

type Json = Readonly<Record<string, unknown>>;

export interface DocumentOptions {
  operations: readonly Operation[];
  /** The description of each namespace, by its name, in the order of the reference. */
  namespaces: Readonly<Record<string, string>>;
  version: string;
  /** Base URL of the service. Empty: the origin of the document. */
  publicUrl: string;
}

const introduction = `
Every operation is \`POST /v2/<namespace>.<operation>\` with the header \`Content-Type: application/json\`. The body is a
JSON object, or an array if the operation says so. Send a root key as \`Authorization: Bearer <root key>\`.

A response contains \`meta.requestId\` and either \`data\` or \`error\`. \`error.type\` is the address of a page that explains
the problem, its causes and how to fix it. New versions may add properties to responses, so ignore unknown properties.
A request with an unknown property is rejected.

If a workspace has a limit of requests per minute, responses carry \`RateLimit-Limit\`, \`RateLimit-Remaining\` and
\`RateLimit-Reset\`.

Times are Unix times in milliseconds, durations are in milliseconds, amounts are integers. Bodies are UTF-8, without
compression. Values that JSON parsers would change silently are rejected: numbers that a double cannot represent,
unpaired surrogates, the property \`__proto__\`, and duplicate properties in one object.
`.trim();

/** The OpenAPI 3.1 document of these operations, made from their declarations. */
export function openApiDocument(options: DocumentOptions): Json {
  const steps = documentSteps(options);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Makes the document in steps of a few milliseconds, one for each operation. */
export function* documentSteps({ operations, namespaces, version, publicUrl }: DocumentOptions): Generator<void, Json> {
  const components = new Components(publicUrl);
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    paths[`/v2/${operation.name}`] = { post: describeOperation(operation, components) };
    yield;
  }
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
    webhooks: describeEvents(components),
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
    description: `${declaration.description}\n\nPermissions of the root key: ${permissions || "none"}`,
    ...(kind === "metered" && (operation.anonymousCaller || operation.isPublic) && { security: [{ rootKey: [] }, {}] }),
    requestBody: {
      required: true,
      content: {
        "application/json": {
          schema: components.schema(declaration.input, "input"),
          examples: mapValues(
            named.filter(([, example]) => "output" in example),
            ({ summary, input }) => ({ summary, value: input }),
          ),
          // In a member of its own: otherwise a tool could show a rejected request as the sample of the operation.
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
        description: "Success.",
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

/** The request that an endpoint gets for each type of event, by the name of the type. */
function describeEvents(components: Components): Json {
  const described = Object.entries(eventTypes).map(([type, { summary, version, data }]) => [
    type,
    {
      post: {
        operationId: `event.${type}`,
        summary,
        description:
          "Signed as the Standard Webhooks specification says. `events.listEvents` has the same `id`, `type`, `version` and " +
          "`data`.",
        security: [],
        parameters: webhookHeaders,
        requestBody: {
          required: true,
          content: {
            "application/json": {
              schema: {
                type: "object",
                properties: {
                  id: { type: "string", description: "The same in every delivery of the event." },
                  type: { type: "string", const: type },
                  version: { type: "integer", const: version, description: "The version of the schema of `data`." },
                  timestamp: { type: "string", format: "date-time", description: "When it happened." },
                  data: components.schema(data, "output"),
                },
                required: ["id", "type", "version", "timestamp", "data"],
              },
            },
          },
        },
        responses: { "2XX": { description: "The endpoint has the event. Any other status is a failed delivery." } },
      },
    },
  ]);
  return Object.fromEntries(described);
}

const webhookHeaders = [
  ["webhook-id", "The id of the event."],
  ["webhook-timestamp", "When the request was sent, in seconds since 1970."],
  ["webhook-signature", "The signatures of the request, separated by spaces. There are two while a secret rotates."],
].map(([name, description]) => ({ name, in: "header", required: true, description, schema: { type: "string" } }));

type Named = readonly (readonly [name: string, example: Example])[];

/** Examples by a name that is made from their summary. A request and its response have the same name. */
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

/** Error responses by status. A status without problems or examples of this operation refers to a shared response. */
function errorResponses(operation: Operation, named: Named, components: Components): Json {
  const { name } = operation;
  const codes = problemsOf(operation);
  const statuses = [...new Set(codes.map((code) => problems[code].status))].sort((a, b) => a - b);
  const failing = named.filter(([, example]) => "problem" in example) as [string, Example & { problem: ProblemCode }][];
  return Object.fromEntries(
    statuses.map((status) => {
      const here = codes.filter((code) => problems[code].status === status);
      const examples = failing.filter(([, { problem }]) => problems[problem].status === status);
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

/** Published clients expect `application/problem+json` in these two cases. */
function errorMediaType(status: number, name?: string): string {
  return status === 429 || name === "identities.deleteIdentity" ? "application/problem+json" : "application/json";
}

/** The components that operations share, collected while the operations are described. */
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
          description: "A root key of the service. `latchkey root-key create` creates one.",
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

  /** A schema as JSON Schema. Schemas with an id become components of that name. */
  schema(schema: z.ZodType, io: "input" | "output"): Json {
    const {
      $schema: _,
      $defs = {},
      ...own
    } = z.toJSONSchema(schema, { io, override: (node) => refine(node.jsonSchema, io) });
    for (const [name, definition] of Object.entries($defs)) {
      const found = relocate(definition);
      const existing = this.#schemas[name];
      if (existing && JSON.stringify(existing) !== JSON.stringify(found)) {
        throw new Error(
          `Two different schemas have the id ${name}. Ids must be unique, also between input and output.`,
        );
      }
      this.#schemas[name] = found;
    }
    return relocate(own);
  }

  /** The response of one status, with its problems and the examples of the operation. */
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

  /** A reference to the shared response of a status. */
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
  "X-Request-Id": { description: "Equal to `meta.requestId`.", schema: { type: "string" } },
  "WWW-Authenticate": { description: "The authentication scheme of root keys.", schema: { const: "Bearer" } },
  Allow: { description: "The methods that this address supports.", schema: { type: "string" } },
  "Retry-After": { description: "Seconds to wait before the next attempt.", schema: { type: "integer", minimum: 0 } },
  "RateLimit-Limit": {
    description: "Maximum number of requests per minute of the workspace.",
    schema: { type: "integer", minimum: 1 },
  },
  "RateLimit-Remaining": { description: "Remaining requests in this minute.", schema: { type: "integer", minimum: 0 } },
  "RateLimit-Reset": { description: "Seconds until the minute ends.", schema: { type: "integer", minimum: 0 } },
  "RateLimit-Policy": {
    description: "The limit that was exceeded, as a Structured Field of draft-ietf-httpapi-ratelimit-headers-10.",
    schema: { type: "string" },
  },
  RateLimit: {
    description: "What is left of it, as a Structured Field of the same draft.",
    schema: { type: "string" },
  },
};

const headersOfStatus: Readonly<Record<number, readonly (keyof typeof headers)[]>> = {
  401: ["WWW-Authenticate"],
  405: ["Allow"],
  429: ["Retry-After", "RateLimit-Policy", "RateLimit", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
  503: ["Retry-After"],
};

const envelopeSchemas: Readonly<Record<string, Json>> = {
  Meta: {
    type: "object",
    description: "Metadata of the request.",
    properties: { requestId: { type: "string", description: "Identifies the request in the log of the service." } },
    required: ["requestId"],
  },
  Pagination: {
    type: "object",
    description: "The position in a list.",
    properties: {
      hasMore: { type: "boolean", description: "Whether there is another page." },
      cursor: { type: "string", description: "Send it as `cursor` to get the next page. Present if there is one." },
    },
    required: ["hasMore"],
  },
  InputError: {
    type: "object",
    description: "One error in a request.",
    properties: {
      location: { type: "string", description: "Path in the schema of the request: `/properties/name/maxLength`." },
      message: { type: "string" },
      fix: { type: "string", description: "How to fix it." },
    },
    required: ["location", "message"],
  },
  Problem: {
    type: "object",
    description: "Why a call failed, with the members of RFC 9457.",
    properties: {
      title: { type: "string" },
      detail: { type: "string", description: "What is wrong with this request and how to fix it." },
      status: { type: "integer", description: "The HTTP status." },
      type: {
        type: "string",
        format: "uri-reference",
        description: "Identifies the problem. The address of a page about it.",
      },
      errors: {
        type: "array",
        items: { $ref: "#/components/schemas/InputError" },
        description: "With status 400, 408 and 413: every error in the request.",
      },
    },
    required: ["title", "detail", "status", "type"],
  },
  Error: {
    type: "object",
    description: "The body of every error response.",
    properties: { meta: { $ref: "#/components/schemas/Meta" }, error: { $ref: "#/components/schemas/Problem" } },
    required: ["meta", "error"],
  },
};

function reference(kind: "schemas" | "headers" | "responses", name: string): Json {
  return { $ref: `#/components/${kind}/${name}` };
}

/** Simplifies the JSON Schema that zod prints. The schema accepts the same values. */
function refine(node: z.core.JSONSchema.BaseSchema, io: "input" | "output"): void {
  // Property names are always strings.
  if (node.propertyNames) delete node.propertyNames;
  if (isEmpty(node.additionalProperties)) node.additionalProperties = true;
  if (node.type === "integer") {
    node.format = "int64";
    if (io === "output") {
      if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
    }
  }
  // An older client must accept properties that a newer service adds.
  if (io === "output" && node.additionalProperties === false) delete node.additionalProperties;
  const [inner, absent, ...others] = (node.anyOf ?? []) as z.core.JSONSchema.BaseSchema[];
  // Except `enum`, every keyword constrains only one type, so null can join the list of types.
  if (absent?.type === "null" && others.length === 0 && typeof inner?.type === "string" && !inner.enum) {
    delete node.anyOf;
    refine(inner, io);
    Object.assign(node, { ...inner, ...node, type: [inner.type, "null"] });
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** The schema with its references pointing to the components of the document. */
function relocate(schema: object): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', '"$ref":"#/components/schemas/'));
}

function mapValues<T>(entries: readonly (readonly [string, T])[], to: (value: T) => unknown): Json {
  return Object.fromEntries(entries.map(([name, value]) => [name, to(value)]));
}
