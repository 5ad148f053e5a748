/**
 * Stands for the payment provider, and takes every payment.
 *
 * A real one is asked to collect the money, and calls a webhook with the id of the payment when it has arrived. What the
 * webhook does is what the website does after this call: add the credits, with the id as the idempotency key.
 */
export async function pay(payment: { id: string; dollars: number }): Promise<{ id: string }> {
  return { id: payment.id };
}
