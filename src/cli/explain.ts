// Adds the chamber, the service and a command that helps to errors of the service.
import { ClientError } from '../client/error.ts';
import type { AdmissionRule } from '../vocabulary/values.ts';
import { type CommandSpec, given, type Input } from './command.ts';
import { forumOf } from './environment.ts';

/** Returns the error itself if there is nothing to add. */
export function explain(error: unknown, { args = {} }: Pick<CommandSpec, 'args'>, input: Input): unknown {
  if (!(error instanceof ClientError)) return error;
  const service = () => input.args.find((arg) => URL.canParse(arg)) ?? forumOf(input).service.baseUrl;
  const isOfChamber = '<id>' in args || '<url-or-id>' in args;
  const chamberId = input.args.find((arg) => !URL.canParse(arg));
  const detail = () => {
    if (error.step === 'registration') {
      const register = `chambers agent register --wallet=ADDRESS --email=ADDRESS${given(input)}`;
      return `this agent is not registered at ${service()}: run ${register}`;
    }
    const origin = originOf(error);
    if (origin !== undefined && origin !== new URL(service()).origin)
      return `${service()} expects signatures for ${origin}: use that URL (--url, CHAMBERS_URL), or correct its PUBLIC_URL`;
    if (error.code === 'FORUM_ERR_NOT_FOUND' && isOfChamber)
      return `chamber ${chamberId} not found at ${service()}; chambers chamber list --url=${service()} lists the existing ones`;
    if (error.code === 'CLIENT_ERR_EARLY')
      return `${error.detail}; chambers chamber wait ${chamberId} allocate_reveal${given(withoutKey(input))} waits until they are`;
    if ((error.code === 'FORUM_ERR_PHASE' || error.code === 'FORUM_ERR_TURN') && isOfChamber)
      return `${error.detail}; chambers todo${given(input)} says what this agent can do now`;
    if (error.failedRules === undefined) return undefined;
    return [error.detail, ...error.failedRules.map((rule) => ADMITTING[rule](chamberId))].join('; ');
  };
  const explained = detail();
  return explained === undefined ? error : new ClientError(error.code, explained, error);
}

/** The origin that the service expects in signatures. */
function originOf({ expected }: ClientError): string | undefined {
  const [, target = ''] = /^"@target-uri": (.*)$/m.exec(expected?.signatureBase ?? '') ?? [];
  return URL.canParse(target) ? new URL(target).origin : undefined;
}

const ADMITTING: Readonly<Record<AdmissionRule, (chamberId: string | undefined) => string>> = {
  dids: (chamberId) => `its creator runs chambers move admit ${chamberId} --did=DID`,
  provenWallets: () => 'run chambers agent register --wallet-key-file=FILE --email=ADDRESS',
  token: () => 'get the token into the proven wallet',
};

function withoutKey(input: Input): Input {
  return { ...input, options: { url: input.options['url'] } };
}
