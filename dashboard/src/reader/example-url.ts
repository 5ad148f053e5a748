/** The address in printed examples. In a browser, scripts replace it by that of the service. */
export const EXAMPLE_URL = "http://127.0.0.1:3000";
