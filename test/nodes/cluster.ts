// Service nodes on one database, each in its own process, which a scenario can kill, freeze, and restart on the same port.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { findLine } from '../../src/process/child-output.ts';
import { ROOT } from '../kit/programs.ts';

/** The address that signatures cover at every node. */
export const PUBLIC_URL = 'http://service.test';

export interface ServiceNode {
  readonly url: string;
  readonly signal: (signal: 'SIGSTOP' | 'SIGCONT') => void;
  /** Sends SIGKILL, and resolves when the process has exited. */
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<void>;
}

export interface Cluster {
  readonly nodes: readonly ServiceNode[];
  /** Unexpected exits and error messages. */
  readonly problems: readonly string[];
  readonly stop: () => Promise<void>;
}

export interface ClusterOptions {
  readonly databaseUrl: string;
  readonly nodes: number;
  /** The path of the service's program. */
  readonly program: string;
  readonly settings?: Readonly<Record<string, string>>;
}

export async function startCluster({
  databaseUrl,
  nodes: count,
  program,
  settings = {},
}: ClusterOptions): Promise<Cluster> {
  const problems: string[] = [];
  const starting = Array.from({ length: count }, async (_, index) => {
    let isExpectedToEnd = false;
    const run = async (port: number) => {
      const started = await startNode({ program, databaseUrl, port, settings });
      isExpectedToEnd = false;
      started.child.once('exit', (code, signal) => {
        if (!isExpectedToEnd) problems.push(`node ${index + 1} exited with ${code ?? signal}: ${started.errors()}`);
      });
      return started;
    };
    let current = await run(0);
    const { url } = current;
    const kill = async () => {
      isExpectedToEnd = true;
      const { child } = current;
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    };
    const node: ServiceNode = {
      url,
      signal: (signal) => void current.child.kill(signal),
      kill,
      start: async () => {
        current = await run(Number(new URL(url).port));
      },
    };
    return node;
  });
  const nodes = await Promise.all(starting);
  const stop = async () => void (await Promise.all(nodes.map(({ kill }) => kill())));
  return { nodes, problems, stop };
}

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly errors: () => string;
}

interface NodeOptions {
  readonly program: string;
  readonly databaseUrl: string;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
}

/** Standard input is a pipe from this process, so that the node exits when this process ends in any way. */
const WHILE_PARENT_LIVES = 'data:text/javascript,process.stdin.on("end",()=>process.exit()).resume().unref()';

async function startNode({ program, databaseUrl, port, settings: more }: NodeOptions): Promise<Started> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const settings = {
    DATABASE_URL: databaseUrl,
    PORT: String(port),
    PUBLIC_URL,
    CHAIN: 'none',
    LOG_LEVEL: 'error',
    ...more,
  };
  const child = spawn(process.execPath, ['--import', WHILE_PARENT_LIVES, program], {
    cwd: ROOT,
    env: { PATH, NODE_COMPILE_CACHE, ...settings },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const [, url = ''] = await findLine(child.stdout, /^listening on (\S+)$/).catch(() => {
    throw new Error(`a node did not start: ${errors}`);
  });
  return { child, url, errors: () => errors };
}
