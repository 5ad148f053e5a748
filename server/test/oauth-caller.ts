/** Calls of the routes of OAuth without a listening server, and a client that uses them. */
import assert from "node:assert/strict";
import inject from "light-my-request";
import * as oauth from "oauth4webapi";
import type { TestServer } from "./harness.ts";

export interface FormAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows its answer.
  readonly body: any;
}

export interface FormOptions {
  readonly authorization?: string | undefined;
  readonly from?: string;
  readonly headers?: Record<string, string>;
}

/** The header of HTTP Basic, encoded as RFC 6749, section 2.3.1, says. */
export function basic(id: string, secret: string): string {
  const encode = (text: string) => encodeURIComponent(text).replaceAll("%20", "+");
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString("base64")}`;
}

/** Posts a form. A list of pairs can repeat a parameter; a text is sent as it is. */
export async function postForm(
  server: TestServer,
  path: string,
  form: Record<string, string> | [string, string][] | string,
  { authorization, from, headers = {} }: FormOptions = {},
): Promise<FormAnswer> {
  const answer = await inject(server.service.dispatch, {
    method: "POST",
    url: path,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      ...(authorization !== undefined && { authorization }),
      ...headers,
    },
    payload: typeof form === "string" ? form : new URLSearchParams(form).toString(),
    ...(from !== undefined && { remoteAddress: from }),
  });
  assert.equal(answer.headers["content-type"], "application/json", answer.payload);
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers.pragma, "no-cache");
  assert.match(String(answer.headers["x-request-id"]), /^req_/);
  return {
    status: answer.statusCode,
    headers: answer.headers as Record<string, string>,
    body: JSON.parse(answer.payload),
  };
}

/** Introspects a token with a root key, by default that of the administrator. */
export async function introspect(
  server: TestServer,
  token: string,
  { as = server.rootKey, from, ...more }: { as?: string; from?: string } & Record<string, string> = {},
) {
  const { status, body } = await postForm(
    server,
    "/oauth/introspect",
    { token, ...more },
    { authorization: `Bearer ${as}`, ...(from !== undefined && { from }) },
  );
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Asks for a token with a key. */
export function requestToken(
  server: TestServer,
  { keyId, key }: { keyId: string; key: string },
  more: Record<string, string> = {},
  path = "/oauth/token",
): Promise<FormAnswer> {
  return postForm(server, path, { grant_type: "client_credentials", ...more }, { authorization: basic(keyId, key) });
}

/** A document about an issuer. */
export async function getDocument(server: TestServer, path: string): Promise<FormAnswer> {
  const { statusCode, headers, payload } = await inject(server.service.dispatch, { method: "GET", url: path });
  return { status: statusCode, headers: headers as Record<string, string>, body: JSON.parse(payload) };
}

/** What `fetch` of a client does: it reaches the server at its public address. */
export function fetchFrom(server: TestServer) {
  return async (url: string, { method, headers, body }: oauth.CustomFetchOptions<string, unknown>) => {
    const { host, pathname, search } = new URL(url);
    const answer = await inject(server.service.dispatch, {
      method: method as "GET",
      url: pathname + search,
      headers: { ...headers, host },
      ...(body != null && { payload: String(body) }),
    });
    return new Response(answer.payload, {
      status: answer.statusCode,
      headers: answer.headers as Record<string, string>,
    });
  };
}

/** What a resource server or a client does with `oauth4webapi`. */
export class OAuthCaller {
  readonly server: TestServer;
  readonly #options: { [oauth.customFetch]: ReturnType<typeof fetchFrom> };
  #metadata: oauth.AuthorizationServer | undefined;

  constructor(server: TestServer) {
    this.server = server;
    this.#options = { [oauth.customFetch]: fetchFrom(server) };
  }

  /** The metadata of an issuer. */
  async discover(issuer: string): Promise<oauth.AuthorizationServer> {
    const answer = await oauth.discoveryRequest(new URL(issuer), { ...this.#options, algorithm: "oauth2" });
    this.#metadata = await oauth.processDiscoveryResponse(new URL(issuer), answer);
    return this.#metadata;
  }

  /** A token for a key, by the method of authentication. */
  async token(
    { keyId, key }: { keyId: string; key: string },
    parameters: Record<string, string> = {},
    authentication: (secret: string) => oauth.ClientAuth = oauth.ClientSecretBasic,
  ): Promise<oauth.TokenEndpointResponse> {
    const client = { client_id: keyId };
    const issuer = this.#metadata!;
    const options = this.#options;
    const answer = await oauth.clientCredentialsGrantRequest(issuer, client, authentication(key), parameters, options);
    return oauth.processClientCredentialsResponse(issuer, client, answer);
  }

  /** What a token or a key is, as a resource server with a root key learns. */
  async introspect(
    token: string,
    { rootKeyId, key }: { rootKeyId: string; key: string },
    authentication: (secret: string) => oauth.ClientAuth = oauth.ClientSecretBasic,
  ): Promise<oauth.IntrospectionResponse> {
    const client = { client_id: rootKeyId };
    const answer = await oauth.introspectionRequest(this.#metadata!, client, authentication(key), token, this.#options);
    return oauth.processIntrospectionResponse(this.#metadata!, client, answer);
  }

  /** Validates a token as a resource server does (RFC 9068, section 4), at the time of the service. */
  validate(token: string, audience: string): Promise<oauth.JWTAccessTokenClaims> {
    const request = new Request("https://api.example.com/", { headers: { authorization: `Bearer ${token}` } });
    return oauth.validateJwtAccessToken(this.#metadata!, request, audience, {
      ...this.#options,
      [oauth.clockSkew]: Math.round((this.server.clock.now() - Date.now()) / 1_000),
      [oauth.clockTolerance]: 0,
    });
  }
}
