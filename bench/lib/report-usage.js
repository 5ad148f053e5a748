// Loaded into a server under test (`node --import`): reports its use of CPU and memory to the bench over IPC, and ends it
// when the bench disconnects. JavaScript, because loading TypeScript takes memory that is not the server's.
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpuMs: (user + system) / 1_000, residentBytes: process.memoryUsage.rss() });
});
process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
