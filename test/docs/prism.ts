// Prism (from `npm run judges`) between a client and a service: an independent comparison of requests and responses with the document.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { judge, judgeFolder } from '../judges/installed.ts';

export interface Prism {
  stop(): Promise<void>;
}

interface PrismOptions {
  /** The URL of Prism, which signatures cover. */
  readonly publicUrl: string;
  /** The service. */
  readonly upstream: string;
}

interface Violation {
  /** `request` or `response` first. */
  readonly location: readonly string[];
  readonly message: string;
}

export async function startPrism({ publicUrl, upstream }: PrismOptions): Promise<Prism> {
  const document = join(judgeFolder('prism'), 'openapi.json');
  writeFileSync(document, await (await fetch(`${upstream}/openapi.json`)).text());
  const [program, script] = judge('prism');
  // Prism's own CORS headers would hide the service's.
  const options = ['--port', new URL(publicUrl).port, '--cors', 'false'];
  const child = spawn(program, [script, 'proxy', document, upstream, ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await listening(child, exited);
  const stop = async () => {
    child.kill();
    await exited;
  };
  return { stop };
}

async function listening({ stdout }: ChildProcess, exited: Promise<unknown>): Promise<void> {
  if (stdout === null) throw new Error('Prism has no output');
  const lines = createInterface(stdout);
  const started = new Promise<void>((resolve) => {
    lines.on('line', (line) => line.includes('Prism is listening') && resolve());
  });
  const ended = exited.then(() => {
    throw new Error('Prism ended before it listened');
  });
  await Promise.race([started, ended]);
}

/** Prism's findings in an exchange: in the response, and, if the service accepted it, in the request. */
export function prismFindings(response: Response): readonly string[] {
  const violations: readonly Violation[] = JSON.parse(response.headers.get('sl-violations') ?? '[]');
  return violations
    .filter(({ location: [where] }) => where === 'response' || response.ok)
    .map(({ location, message }) => `${location.join('.')}: ${message}`);
}
