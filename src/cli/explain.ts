// Errors of the service as the command line reports them: with the chamber, the service, and the command that helps.
import { ClientError } from '../client/error.ts';
import type { CommandSpec, Input } from './command.ts';
import { forumOf } from './environment.ts';

/** The same error with more to its detail, or the error itself. */
export function explain(error: unknown, { args = {} }: CommandSpec, input: Input): unknown {
  if (!(error instanceof ClientError)) return error;
  const service = () => input.args.find((arg) => URL.canParse(arg)) ?? forumOf(input).service.baseUrl;
  if (error.step === 'registration') {
    const register = `chambers agent register --wallet=ADDRESS --email=ADDRESS${optionsOf(input)}`;
    return new ClientError(error.code, `this agent is not registered at ${service()}: run ${register}`, error);
  }
  const isOfChamber = '<id>' in args || '<url-or-id>' in args;
  if (error.code !== 'FORUM_ERR_NOT_FOUND' || !isOfChamber) return error;
  const chamberId = input.args.find((arg) => !URL.canParse(arg));
  return new ClientError(error.code, `chamber ${chamberId} not found at ${service()}`, error);
}

/** Those that the next command needs too. */
function optionsOf({ options: { url, key } }: Input): string {
  return `${url === undefined ? '' : ` --url=${url}`}${key === undefined ? '' : ` --key=${key}`}`;
}
