/** A passage of a page as the search finds it. */
export type SearchEntry = readonly [
  /** Below the root of the service. */
  address: string,
  page: string,
  title: string,
  text: string,
];
