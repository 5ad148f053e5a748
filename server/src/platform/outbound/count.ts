/** Adds to the count of a name. A name whose count is 0 takes no memory. */
export function addTo(counts: Map<string, number>, name: string, difference: number): void {
  const count = (counts.get(name) ?? 0) + difference;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}
