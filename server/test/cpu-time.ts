/**
 * The CPU time that this thread takes for `work`, in milliseconds. The time of a clock would include other processes of
 * the machine.
 */
export async function cpuTimeOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
