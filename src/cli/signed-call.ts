// Sends a command's signed request, and repeats it while the result is unknown. A command that gives up saves the request to a file,
// because only the same bytes take effect once: running the command again would sign another move.
import { randomUUID } from 'node:crypto';
import { readFile, unlink } from 'node:fs/promises';
import * as v from 'valibot';
import type { Agent } from '../client/agent.ts';
import type { SendOptions, SignedRequest } from '../client/call.ts';
import { ClientError } from '../client/error.ts';
import { createFile } from '../files/durable-file.ts';
import { signedRequest } from '../mcp/signed-request.ts';
import { type Input, urlAndKeyOptions } from './command.ts';
import { agentOf, interruptible, keyFileOf, PATIENCE_MILLIS, patienceOf } from './environment.ts';
import { CommandError, printMembers, printNotice } from './output.ts';
import { isRegularFile } from './write-whole.ts';

type Call<Result> = (agent: Agent, options: SendOptions) => Promise<Result>;

export async function signedCall<Result>(input: Input, call: Call<Result>): Promise<Result> {
  let signed: SignedRequest | undefined;
  const beforeSend = async (request: SignedRequest) => {
    signed = request;
  };
  return await withPatience(
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
      return unknownResult(why, path, input);
    },
    () => signed !== undefined,
  ).catch((error: unknown) => {
    // The client gives up on its own only if the service accepted nothing.
    if (!(error instanceof ClientError) || !isUnavailable(error)) throw error;
    throw new ClientError(error.code, `${error.detail}; nothing was accepted: run the command again`, error);
  });
}

function isUnavailable({ code }: ClientError): boolean {
  return code === 'CLIENT_ERR_UNREACHABLE' || code === 'FORUM_ERR_UNAVAILABLE';
}

/** Runs `chambers agent resend`, which removes the file once the result is known. */
export async function resend(input: Input): Promise<void> {
  const [path = ''] = input.args;
  const request = await readRequest(path);
  const call: Call<object> = (agent, options) => agent.resend(request, options);
  const onGiveUp = async (why: string) => unknownResult(why, path, input);
  const result = await withPatience(input, call, onGiveUp).catch(async (error: unknown) => {
    const isDecided = error instanceof ClientError && error.code.startsWith('FORUM_ERR_') && !error.retryable;
    if (isDecided) await unlink(path);
    throw error;
  });
  await unlink(path);
  printMembers(input.isJson, result);
}

const WAITING =
  'No response yet; the request may have been accepted, and is repeated until a response arrives. Ctrl-C stops.';
const NOT_SENT = 'No response yet; nothing has been sent. Ctrl-C stops.';

/** Makes the call within the time limit of --patience. `onGiveUp` creates the error for a call that SIGINT or the limit has stopped. */
async function withPatience<Result>(
  input: Input,
  call: Call<Result>,
  onGiveUp: (why: string) => Promise<CommandError>,
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
    throw error === interrupted || error === late ? await onGiveUp((error as Error).message) : error;
  } finally {
    clearTimeout(notice);
  }
}

function unknownResult(why: string, path: string, input: Input): CommandError {
  const command = `chambers agent resend ${path}${urlAndKeyOptions(input)}`;
  const detail = `${why}: the request may have been accepted. To send it again, without the risk of a second effect: ${command}`;
  return new CommandError('unreachable', detail, { resend: path });
}

async function readRequest(path: string): Promise<SignedRequest> {
  if (!(await isRegularFile(path))) throw new CommandError('usage', `${path} not found`);
  try {
    return v.parse(signedRequest, JSON.parse(await readFile(path, 'utf8')));
  } catch {
    throw new CommandError('usage', `${path} is not a signed request that this program saved`);
  }
}
