/** The channel on which a commit wakes the other nodes. */
export const CHANGES_CHANNEL = "latchkey_changes";
