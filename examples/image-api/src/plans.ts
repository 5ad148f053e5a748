/** A tier. Its name is that of a role in `latchkey.yaml`, which says what its keys may do. */
export interface Plan {
  readonly name: "free" | "pro";
  readonly title: string;
  /** Per month, in dollars. */
  readonly price: number;
  /** The balance at the start, and again on the first of each month. */
  readonly credits: number;
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

/** The limits of a key of this plan. `autoApply` charges them with each verification. */
export function limitsOf(plan: Plan) {
  return [{ name: "requests", limit: plan.requestsPerMinute, duration: 60_000, autoApply: true }];
}

export function refillOf(plan: Plan) {
  return { interval: "monthly", amount: plan.credits } as const;
}
