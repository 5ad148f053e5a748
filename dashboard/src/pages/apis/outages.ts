/** The answer to a verification whose question gets none. */
export const outages = {
  unavailable: "Status 503: the caller tries again",
  not_found: "NOT_FOUND, as if the key did not exist",
} as const;
