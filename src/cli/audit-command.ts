// `chambers audit`, which the package chambers-audit offers alone.
import type { CommandSpec, Input } from './command.ts';
import { toOptionalInteger } from './values.ts';

export const auditCommand = {
  name: 'audit',
  summary: 'Checks chambers whole from their lines: signatures, decisions, views, roots',
  args: { '<target>': 'the base URL of a service, an exported file, or - for standard input' },
  options: {
    '--chamber <id>': 'only that chamber of a service',
    '--accounts <file>': "the members' accounts, from export --with-accounts; a service is asked for them",
    '--rpc <url>': 'RPC of the chain, to compare root and tokens with; requires --registry',
    '--max-age <seconds>': "the service's SIGNATURE_MAX_AGE_SECONDS",
    '--max-skew <seconds>': "the service's SIGNATURE_MAX_SKEW_SECONDS",
    '--allow-unsigned': 'moves without a signature are not broken: a log of development mode',
  },
  repeatable: {
    '--registry <address>': 'the ChamberRegistry',
    '--factory <address>': 'the IdeaFactory',
    '--origin <url>': 'a base URL of the service',
  },
  exitCodes: [
    '0  sound: nothing is broken or undecided',
    '2  the call or the input is unusable',
    '3  something is broken',
    '4  something is undecided: an option named in the report decides it',
    '6  the service or the chain is unreachable',
  ],
  examples: ['audit chamber-1.ndjson --accounts=accounts-1.ndjson', 'audit http://127.0.0.1:8787 --chamber=1 --json'],
  run: audit,
} as const satisfies CommandSpec;

async function audit({ args: [target = ''], options, isJson }: Input): Promise<number> {
  const { auditMain } = await import('../audit/main.ts');
  const { chamber, rpc, accounts, origin, registry, factory } = options;
  return await auditMain({
    target,
    chamber: toOptionalInteger('--chamber', chamber),
    rpc,
    accounts,
    maxAgeSeconds: toOptionalInteger('--max-age', options['max-age']),
    maxSkewSeconds: toOptionalInteger('--max-skew', options['max-skew']),
    origins: toList(origin),
    registries: toList(registry),
    factories: toList(factory),
    allowUnsigned: options['allow-unsigned'] !== undefined,
    json: isJson,
  });
}

function toList(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').filter((item) => item !== '');
}
