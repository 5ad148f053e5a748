/** A tier. Its name is that of a plan in `latchkey.yaml`, which has the limits and permissions of its keys. */
export interface Plan {
  readonly name: "free" | "pro";
  readonly title: string;
  /** Per month, in dollars. */
  readonly price: number;
  /** The balance at the start, and again on the first of each month. */
  readonly credits: number;
  /** What the pages say. `latchkey.yaml` has the limit. */
  readonly requestsPerMinute: number;
  readonly features: readonly string[];
}

export const free: Plan = {
  name: "free",
  title: "Free",
  price: 0,
  credits: 100,
  requestsPerMinute: 30,
  features: ["Palettes"],
};

export const pro: Plan = {
  name: "pro",
  title: "Pro",
  price: 12,
  credits: 5_000,
  requestsPerMinute: 300,
  features: ["Palettes", "Images up to 1,024 pixels"],
};

/** Credits that can be bought at once, and their price in dollars. */
export const packs = [
  { credits: 500, price: 2 },
  { credits: 2_000, price: 6 },
] as const;

export type Pack = (typeof packs)[number];

/** What a call costs, in credits. */
export const costs = { palette: 1, image: { small: 1, medium: 5, large: 20 } } as const;

export function refillOf(plan: Plan) {
  return { interval: "monthly", amount: plan.credits } as const;
}
