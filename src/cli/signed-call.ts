// A signed request of a command. It is repeated while it is unknown whether the service accepted it. A command that gives up keeps the
// request in a file, because only the same bytes take effect once: running the command again would sign another move.
import { randomUUID } from 'node:crypto';
import { readFile, unlink } from 'node:fs/promises';
import * as v from 'valibot';
import type { Agent } from '../client/agent.ts';
import type { SendOptions, SignedRequest } from '../client/call.ts';
import { ClientError } from '../client/error.ts';
import { createFile } from '../files/durable-file.ts';
import { signedRequest } from '../mcp/signed-request.ts';
import { given, type Input } from './command.ts';
import { agentOf, interruptible, keyFileOf, PATIENCE_MILLIS, patienceOf } from './environment.ts';
import { CommandError, printMembers, printNotice } from './output.ts';
import { isRegularFile } from './write-whole.ts';

type Call<Result> = (agent: Agent, options: SendOptions) => Promise<Result>;

export async function signedCall<Result>(input: Input, call: Call<Result>): Promise<Result> {
  let signed: SignedRequest | undefined;
  const beforeSend = async (request: SignedRequest) => {
    signed = request;
  };
  return await awaited(
    input,
    (agent, options) => call(agent, { ...options, beforeSend }),
    async (why) => {
      if (signed === undefined)
        return new CommandError('unreachable', `${why}; nothing was sent: run the command again`);
      const path = `${keyFileOf(input)}.unanswered-${randomUUID().slice(0, 8)}`;
      const text = JSON.stringify(signed);
      try {
        await createFile(path, text, { mode: 0o600 });
      } catch (error) {
        const problem = `it can't be saved in ${path} (${(error as Error).message})`;
        return new CommandError('unreachable', `${why}: the request may have been accepted, and ${problem}: ${text}`);
      }
      return unanswered(why, path, input);
    },
    () => signed !== undefined,
  ).catch((error: unknown) => {
    // The client gives up by itself only if nothing was accepted.
    if (!(error instanceof ClientError) || !isAway(error)) throw error;
    throw new ClientError(error.code, `${error.detail}; nothing was accepted: run the command again`, error);
  });
}

function isAway({ code }: ClientError): boolean {
  return code === 'CLIENT_ERR_UNREACHABLE' || code === 'FORUM_ERR_UNAVAILABLE';
}

/** `chambers agent resend` removes the file once the result is known. */
export async function resend(input: Input): Promise<void> {
  const [path = ''] = input.args;
  const request = await readRequest(path);
  const call: Call<object> = (agent, options) => agent.resend(request, options);
  const gaveUp = async (why: string) => unanswered(why, path, input);
  const result = await awaited(input, call, gaveUp).catch(async (error: unknown) => {
    const isDecided = error instanceof ClientError && error.code.startsWith('FORUM_ERR_') && !error.retryable;
    if (isDecided) await unlink(path);
    throw error;
  });
  await unlink(path);
  printMembers(input.isJson, result);
}

const WAITING = 'No response yet; the request may have been accepted and is repeated until there is one. Ctrl-C stops.';
const NOT_SENT = 'No response yet; nothing has been sent. Ctrl-C stops.';

/** `gaveUp` creates the error of a call that SIGINT or the end of the patience has stopped. */
async function awaited<Result>(
  input: Input,
  call: Call<Result>,
  gaveUp: (why: string) => Promise<CommandError>,
  isSent: () => boolean = () => true,
): Promise<Result> {
  const agent = await agentOf(input);
  const millis = patienceOf(input);
  const [interrupted, late] = [new Error('interrupted'), new Error(`no result within ${input.options['patience']}`)];
  const timeout = millis === undefined ? undefined : { millis, reason: late };
  const notice = setTimeout(() => printNotice(input.isJson, isSent() ? WAITING : NOT_SENT), PATIENCE_MILLIS);
  try {
    return await interruptible(interrupted, (signal) => call(agent, { signal }), timeout);
  } catch (error) {
    throw error === interrupted || error === late ? await gaveUp((error as Error).message) : error;
  } finally {
    clearTimeout(notice);
  }
}

function unanswered(why: string, path: string, input: Input): CommandError {
  const command = `chambers agent resend ${path}${given(input)}`;
  const detail = `${why}: the request may have been accepted. This command sends it again, and it takes effect once: ${command}`;
  return new CommandError('unreachable', detail, { resend: path });
}

async function readRequest(path: string): Promise<SignedRequest> {
  if (!(await isRegularFile(path))) throw new CommandError('usage', `${path} not found`);
  try {
    return v.parse(signedRequest, JSON.parse(await readFile(path, 'utf8')));
  } catch {
    throw new CommandError('usage', `${path} is not a signed request of this command line`);
  }
}
