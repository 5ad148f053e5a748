import { chmodSync, copyFileSync, cpSync, existsSync, globSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeDirectory, type Service, startService, unprivilegedAccount } from "./service.ts";

/** Starts a PgBouncer in front of a PostgreSQL. `program`: its path; libraries that were unpacked with it are used. */
export function startPgBouncer(program: string, target: string, mode: "session" | "transaction"): Promise<Service> {
  const account = unprivilegedAccount("postgres");
  const { hostname, port: targetPort, username, pathname } = new URL(target);
  return startService(
    (port) => {
      const directory = makeDirectory("pgbouncer", account);
      // Another account runs it, which may not be allowed to read the folder of the repository.
      chmodSync(directory, 0o755);
      const copied = join(directory, "pgbouncer");
      copyFileSync(program, copied);
      chmodSync(copied, 0o755);
      const libraries = join(dirname(program), "../lib");
      const isUnpacked = !program.startsWith("/usr/") && existsSync(libraries);
      if (isUnpacked) cpSync(libraries, join(directory, "lib"), { recursive: true, verbatimSymlinks: true });
      const config = join(directory, "pgbouncer.ini");
      const users = join(directory, "users.txt");
      writeFileSync(users, `"${username}" ""\n`, { mode: 0o644 });
      writeFileSync(
        config,
        `
[databases]
${pathname.slice(1)} = host=${hostname} port=${targetPort} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = 80
max_client_conn = 200
`,
        { mode: 0o644 },
      );
      const environment = { LD_LIBRARY_PATH: globSync(join(directory, "lib/*/")).join(":") };
      return {
        program: copied,
        args: [config],
        directory,
        account,
        stopSignal: "SIGINT",
        ...(isUnpacked && { environment }),
      };
    },
    /process up/,
    (port) => {
      const url = new URL(target);
      url.host = `127.0.0.1:${port}`;
      return url.href;
    },
  );
}
