/** The notification channel by which a commit wakes other nodes. */
export const CHANGES_CHANNEL = "latchkey_changes";
