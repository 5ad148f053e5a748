/**
 * Leases: parts of a limit that home has subtracted, and that an edge spends. Both sides must agree on which limits have them,
 * or an edge asks in vain.
 */

/** Smaller limits have none: a tenth of them is too little to lend. */
export const LIMIT_LEASED_MIN = 100;
/** Nor have limits of shorter windows: a lease ends with its window. In milliseconds. */
export const DURATION_LEASED_MIN = 2_000;
/** The longest lease, in milliseconds. A shorter one ends with its window. */
export const LEASE_TIME_MAX = 10_000;
/** What is lent and what was lost in a window is at most the limit divided by this. */
export const OUTSTANDING_SHARE = 10;
/** Limits of one question. */
export const LEASES_PER_QUESTION_MAX = 256;
/** Ended leases of one limit that one question returns. */
export const RETURNS_MAX = 4;
