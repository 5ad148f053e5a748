/** An option that is a whole number in a range. Otherwise prints what is accepted and exits. */
export function wholeNumber<N extends string>(
  values: Readonly<Record<N, string>>,
  name: N,
  minimum: number,
  maximum: number,
): number {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  console.error(`--${name} is a whole number from ${minimum} to ${maximum}, not ${values[name]}.`);
  return process.exit(1);
}
