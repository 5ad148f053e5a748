import inject from "light-my-request";
import { portalOperations } from "../src/service/operations.ts";
import { examine, type Reply, type TestServer } from "./harness.ts";

/** What a call of the portal is sent with. */
export interface PortalCallOptions {
  headers?: Record<string, string | undefined>;
  raw?: string;
  from?: string;
}

/** Makes a call with the token of a session, as a page of another origin does; checks the reply against its declaration. */
export async function callPortal(
  server: TestServer,
  token: string | null,
  name: string,
  body: object = {},
  { headers = {}, raw = JSON.stringify(body), from }: PortalCallOptions = {},
): Promise<Reply> {
  const operation = portalOperations.find((one) => one.name === `portal.${name}`)!;
  const url = `/portal/api/${name}`;
  const sent = {
    "content-type": "application/json",
    origin: "https://customer.example",
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...headers,
  };
  const response = await inject(server.service.dispatch, {
    method: "POST",
    url,
    payload: raw,
    headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >,
    ...(from !== undefined && { remoteAddress: from }),
  });
  const replied = response.headers as Record<string, string>;
  return examine(operation, url, response.statusCode, replied, response.payload);
}
