/** Compares texts as the tables of counts do, by their code units. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
