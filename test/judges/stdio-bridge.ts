// Serves a program that speaks MCP over standard input and output over HTTP, because the conformance suite supports only HTTP.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { atEnd } from '../kit/temporary.ts';

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: object;
}

interface Program {
  /** Sends a message; resolves to the response, or at once if the message has no id. */
  send(message: Message): Promise<Message | undefined>;
  /** Calls the listener for every message of the program, until the returned function is called. */
  listen(receive: (message: Message) => void): () => void;
  end(): Promise<void>;
}

/**
 * Restarts the program for each `initialize`, like stdio clients. `first` is the first message to each program and determines its protocol
 * version. Returns the URL.
 */
export async function bridge(start: () => Program, first?: Message): Promise<string> {
  let program = await begin();
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => response.writeHead(500).end(String(error)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    server.close().closeAllConnections();
    await program.end();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;

  async function begin(): Promise<Program> {
    const started = start();
    if (first !== undefined) await started.send(first);
    return started;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The bridge has no stream of its own and no sessions.
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const message = (await json(request)) as Message;
    if (message.method === 'initialize') {
      await program.end();
      program = await begin();
    }
    if (message.method === 'subscriptions/listen') return stream(message, response);
    const result = await program.send(message);
    if (result === undefined) return void response.writeHead(202).end();
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
  }

  /** Yields every message of the program until the client disconnects. */
  function stream(message: Message, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const end = program.listen((received) => response.write(`data: ${JSON.stringify(received)}\n\n`));
    response.once('close', end);
    void program.send(message);
  }
}

export function startProgram(words: readonly string[], env: NodeJS.ProcessEnv): Program {
  const [program = '', ...rest] = words;
  const child = spawn(program, rest, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const listeners = new Set<(message: Message) => void>();
  createInterface(child.stdout).on('line', (line) => {
    for (const receive of listeners) receive(JSON.parse(line));
  });
  child.stdin.on('error', () => {});
  const listen: Program['listen'] = (receive) => {
    listeners.add(receive);
    return () => void listeners.delete(receive);
  };
  return {
    listen,
    async send(message) {
      const response = new Promise<Message>((resolve) => {
        const end = listen((received) => {
          if (received.id !== message.id) return;
          end();
          resolve(received);
        });
      });
      child.stdin.write(`${JSON.stringify(message)}\n`);
      return message.id === undefined ? undefined : response;
    },
    async end() {
      child.kill();
      await exited;
    },
  };
}
