const addresses = new Map<string, Promise<string>>();

/**
 * The address of a server that this test run shares: that of `variable` in the environment, else the one that the run
 * starts at the first question.
 */
export function sharedService(name: "postgres" | "redis", variable: string): Promise<string> {
  const chosen = process.env[variable];
  if (chosen) return Promise.resolve(chosen);
  const asked = addresses.get(name) ?? ask(name);
  addresses.set(name, asked);
  return asked;
}

async function ask(name: string): Promise<string> {
  const services = process.env.LATCHKEY_TEST_SERVICES;
  if (!services) throw new Error(`This test needs ${name}: run it with \`npm test -- <file>\`, which starts one.`);
  const answer = await fetch(`${services}/${name}`, { headers: { connection: "close" } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text;
}
