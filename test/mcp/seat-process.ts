// `chambers mcp` in its own process, with the official client, recording all bytes in both directions.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Client, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import { CLI } from '../kit/programs.ts';
import { atEnd } from '../kit/temporary.ts';

export type Era = 'legacy' | 'modern';
export const ERAS: readonly Era[] = ['legacy', 'modern'];

export interface SeatProcess {
  readonly client: Client;
  readonly pid: number;
  /** The lines printed for the operator. */
  readonly errors: () => string;
  /** All bytes in both directions and on standard error, in order. */
  readonly bytes: () => string;
  /** Calls a tool and requires success. */
  call<Result>(name: string, args?: object): Promise<Result>;
  /** The result of a tool that is called with null as arguments. */
  nullArguments(name: string): Promise<unknown>;
  kill(): Promise<void>;
}

interface SeatOptions {
  readonly url: string;
  readonly keyFile: string;
  /** Variables of the process, for example to set its clock. */
  readonly env: Readonly<Record<string, string>>;
}

/** A process that is killed at the end of the test. */
export async function startSeat(era: Era, options: SeatOptions): Promise<SeatProcess> {
  const seat = await spawnSeat(era, options);
  atEnd(seat.kill);
  return seat;
}

/** A process that its caller must kill. */
export function spawnSeat(era: Era, { url, keyFile, env }: SeatOptions): Promise<SeatProcess> {
  return spawnServer(era, { command: process.execPath, args: [CLI, 'mcp', `--url=${url}`, `--key=${keyFile}`], env });
}

/** A server started from a host's configuration. */
interface ServerConfig extends Pick<SeatOptions, 'env'> {
  readonly command: string;
  readonly args: readonly string[];
}

/** A process that is killed at the end of the test. */
export async function startServer(era: Era, config: ServerConfig): Promise<SeatProcess> {
  const server = await spawnServer(era, config);
  atEnd(server.kill);
  return server;
}

async function spawnServer(era: Era, { command, args, env }: ServerConfig): Promise<SeatProcess> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(command, args, {
    env: { PATH, NODE_COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  const chunks: string[] = [];
  child.stdout.on('data', (chunk) => chunks.push(`${chunk}`));
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
    chunks.push(`${chunk}`);
  });
  const client = newClient(era);
  const transport = transportOf(child, chunks);
  await client.connect(transport).catch(async (error: unknown) => {
    await kill();
    throw error;
  });
  const call = async (name: string, args: object = {}) => {
    return await client.callTool({ name, arguments: { ...args } }, { timeout: 60_000 });
  };
  return {
    client,
    pid: child.pid as number,
    errors: () => errors,
    bytes: () => chunks.join(''),
    call: async <Result>(name: string, args?: object) => {
      const { isError, content, structuredContent } = await call(name, args);
      if (isError) throw new Error(JSON.stringify(content));
      return structuredContent as Result;
    },
    // The client drops null, so the transport inserts it into the message.
    nullArguments: async (name) => {
      const { send } = transport;
      transport.send = (message, options) =>
        send(JSON.parse(JSON.stringify(message).replace('"arguments":{}', '"arguments":null')), options);
      const { structuredContent, content } = await call(name);
      transport.send = send;
      return structuredContent ?? content;
    },
    kill,
  };
}

export function newClient(era: Era): Client {
  const mode = era === 'legacy' ? 'legacy' : { pin: '2026-07-28' };
  return new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
}

function transportOf({ stdin, stdout }: ChildProcess, chunks: string[]): Transport {
  if (stdin === null || stdout === null) throw new Error('the process has no pipes');
  const transport: Transport = {
    start: async () => {
      createInterface(stdout).on('line', (line) => transport.onmessage?.(JSON.parse(line) as JSONRPCMessage));
      stdout.once('close', () => transport.onclose?.());
      stdin.on('error', () => {});
    },
    send: async (message) => {
      const line = `${JSON.stringify(message)}\n`;
      chunks.push(line);
      stdin.write(line);
    },
    close: async () => {
      stdin.end();
    },
  };
  return transport;
}
