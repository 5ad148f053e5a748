import type express from "express";
import { inject as injectInto, type Response } from "light-my-request";

type Listener = Parameters<typeof injectInto>[0];
type Call = Parameters<typeof injectInto>[1];

/**
 * Calls a listener without a connection. For an application of Express, the library changes the prototypes of the requests and
 * responses of all of them in the process, so that requests over connections fail from then on: they are set back.
 */
export function inject(app: express.Express, call: Call): Promise<Response>;
export function inject(listener: Listener, call: Call): Promise<Response>;
export async function inject(listener: Listener | express.Express, call: Call): Promise<Response> {
  const { request: ofRequests, response: ofResponses } = listener as Partial<express.Express>;
  const before = [ofRequests, ofResponses]
    .filter((each) => each !== undefined)
    .map((each) => Object.getPrototypeOf(each) as object)
    .map((shared) => ({ shared, parent: Object.getPrototypeOf(shared) as object }));
  try {
    return await injectInto(listener as Listener, call);
  } finally {
    for (const { shared, parent } of before) Object.setPrototypeOf(shared, parent);
  }
}
