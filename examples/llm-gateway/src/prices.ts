/** Micro-dollars for a thousand tokens, which are thousandths of a dollar for a million of them. */
const prices = {
  small: { input: 150, output: 600 },
  large: { input: 2_500, output: 10_000 },
} as const;

export type Model = keyof typeof prices;

/** Tokens of one call, named as providers report them. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

export function isModel(name: unknown): name is Model {
  return typeof name === "string" && Object.hasOwn(prices, name);
}

/** What a call costs, in micro-dollars. Credits are integers: the last part of one is rounded up. */
export function costOf(model: Model, { prompt_tokens, completion_tokens }: Usage): number {
  const { input, output } = prices[model];
  return Math.ceil((prompt_tokens * input + completion_tokens * output) / 1_000);
}

/** At most as many tokens as this are in a text: none is shorter than a byte. */
export function tokensAtMost(text: string): number {
  return Buffer.byteLength(text);
}

/** About as many tokens as this are in a text. A tokenizer of the model counts better. */
export function tokensAbout(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}
