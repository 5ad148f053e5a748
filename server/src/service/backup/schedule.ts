/** The default rate of a copy, of reading and writing together. A service with a disk of 200 MB a second keeps its latency. */
export const BACKUP_BYTES_PER_SECOND = 64 * 2 ** 20;
