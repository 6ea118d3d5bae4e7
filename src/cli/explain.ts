// Adds the chamber, the service and a helpful command to errors from the service.
import { ClientError } from '../client/error.ts';
import type { AdmissionRule } from '../vocabulary/values.ts';
import { type CommandSpec, type Input, urlAndKeyOptions } from './command.ts';
import { forumOf } from './environment.ts';

/** Returns the error itself if there is nothing to add. */
export function explain(error: unknown, { args = {} }: Pick<CommandSpec, 'args'>, input: Input): unknown {
  if (!(error instanceof ClientError)) return error;
  const service = () => input.args.find((arg) => URL.canParse(arg)) ?? forumOf(input).service.baseUrl;
  const isOfChamber = '<id>' in args || '<url-or-id>' in args;
  const chamberId = input.args.find((arg) => !URL.canParse(arg));
  const detail = () => {
    if (error.step === 'registration') {
      const register = `chambers agent register --wallet=ADDRESS --email=ADDRESS${urlAndKeyOptions(input)}`;
      return `this agent is not registered at ${service()}: run ${register}`;
    }
    const origin = originOf(error);
    if (origin !== undefined && origin !== new URL(service()).origin)
      return `${service()} expects signatures for ${origin}: use that URL (--url, CHAMBERS_URL), or correct the service's PUBLIC_URL`;
    if (error.code === 'FORUM_ERR_NOT_FOUND' && isOfChamber)
      return `chamber ${chamberId} not found at ${service()}; chambers chamber list --url=${service()} lists the existing ones`;
    if (error.code === 'CLIENT_ERR_EARLY')
      return `${error.detail}; chambers chamber wait ${chamberId} allocate_reveal${urlAndKeyOptions(withoutKey(input))} waits until they are`;
    if ((error.code === 'FORUM_ERR_PHASE' || error.code === 'FORUM_ERR_TURN') && isOfChamber)
      return `${error.detail}; chambers todo${urlAndKeyOptions(input)} says what this agent can do now`;
    if (error.failedRules === undefined) return undefined;
    return [error.detail, ...error.failedRules.map((rule) => ADMISSION_STEPS[rule](chamberId))].join('; ');
  };
  const explained = detail();
  return explained === undefined ? error : new ClientError(error.code, explained, error);
}

function originOf({ expected }: ClientError): string | undefined {
  const [, target = ''] = /^"@target-uri": (.*)$/m.exec(expected?.signatureBase ?? '') ?? [];
  return URL.canParse(target) ? new URL(target).origin : undefined;
}

const ADMISSION_STEPS: Readonly<Record<AdmissionRule, (chamberId: string | undefined) => string>> = {
  dids: (chamberId) => `its creator runs chambers move admit ${chamberId} --did=DID`,
  provenWallets: () => 'run chambers agent register --wallet-key-file=FILE --email=ADDRESS',
  token: () => 'transfer the token to the proven wallet',
};

function withoutKey(input: Input): Input {
  return { ...input, options: { url: input.options['url'] } };
}
