// `chambers audit`, also published as the package chambers-audit.
import { INPUT_LIMITS, type InputLimits } from '../audit/line/input.ts';
import { VERSION } from '../process/version.ts';
import { instantOf, withCommas } from '../vocabulary/values.ts';
import type { CommandSpec, Input } from './command.ts';
import { CommandError } from './output.ts';
import { toInteger, toMillis, toOptionalInteger } from './values.ts';
import { requireWritable, writeWhole } from './write-whole.ts';

export const auditCommand = {
  name: 'audit',
  summary: 'Checks whole chambers from their lines: signatures, decisions, views, roots',
  args: { '<target>': 'the base URL of a service, an exported file, or - for standard input' },
  options: {
    '--chamber <id>': 'only this chamber of a service',
    '--accounts <file>':
      "the members' accounts, from export --with-accounts; read from the service if the target is one",
    '--rpc <url>': 'RPC of the chain to compare the root and the tokens with; requires --registry',
    '--checkpoints <file>': 'checkpoints of the service that you kept: its log must extend each of them',
    '--witnesses <file>': 'trust policy (C2SP tlog-policy) of the witnesses whose cosignatures count',
    '--receipts <file>': 'receipts that you kept, such as the folder next to a key file: the lines must match them',
    '--originals <file>':
      'lines that you saved before their texts were withheld: each is compared with the stub that replaced it',
    '--whole': 'report a chamber with withheld texts as undecided unless --originals has them',
    '--proofs <folder>': 'where to write proofs that the service contradicted its signed statements (default: proofs)',
    '--max-age <seconds>': "the service's SIGNATURE_MAX_AGE_SECONDS",
    '--max-skew <seconds>': "the service's SIGNATURE_MAX_SKEW_SECONDS",
    '--allow-unsigned': 'accept moves without a signature, as in a log from development mode',
    '--allow-reorganized': 'with --rpc: accept transactions in blocks other than the recorded ones',
    '--allow-unpublished': 'accept accounts that begin with lines that releases before schema 4 did not publish',
    '--allow-skipped-ids': 'accept gaps in the chamber ids, which a restore may have caused',
    '--now <time>':
      "the time of the audit (ISO 8601, UTC; default: this machine's time): no line may have a later time",
    '--timeout <seconds>':
      'how long a service or a chain may be silent (default: 30; a response may take at most 20 times as long)',
    '--patience <length>':
      'how long to retry while the service is unreachable, e.g. 60s (default: no retry; requests to the chain are never retried)',
    '--max-lines <count>': `maximum lines of a chamber (default: ${withCommas(INPUT_LIMITS.linesMax)})`,
    '--max-account-lines <count>': `maximum lines of an account (default: ${withCommas(INPUT_LIMITS.accountLinesMax)})`,
    '--max-line-bytes <count>': `maximum bytes of a line (default: ${withCommas(INPUT_LIMITS.lineBytesMax)})`,
    '--max-response-bytes <count>': `maximum bytes of any other response (default: ${withCommas(INPUT_LIMITS.responseBytesMax)})`,
    '--outcome': "print the chamber's outcome instead of the report, byte for byte as GET /chambers/:id/outcome",
    '--verbose': 'print every check of every chamber',
    '--report <file>': 'write the report of --json to a file, with version, time and options',
    '--force': 'replace the file if it exists',
  },
  repeatable: {
    '--registry <address>': 'the ChamberRegistry, as published by the operator, not as named by the log',
    '--factory <address>': 'the IdeaFactory',
    '--origin <url>': 'a base URL of the service',
  },
  exitCodes: [
    '0  sound: every check passed',
    '2  the command line or the input is unusable',
    '3  at least one check failed',
    '4  undecided: an option named in the report decides the open question',
    '6  the service or the chain is unreachable',
  ],
  examples: [
    'audit chamber-1.ndjson --accounts=accounts-1.ndjson',
    'audit http://127.0.0.1:8787 --chamber=1 --json',
    'audit chamber-1.ndjson --outcome',
  ],
  run: audit,
} as const satisfies CommandSpec;

async function audit({ args: [target = ''], options, isJson }: Input): Promise<number> {
  const { auditMain } = await import('../audit/main.ts');
  const { chamber, rpc, accounts, checkpoints, witnesses, receipts, proofs } = options;
  const { origin, registry, factory, verbose, report, force, outcome, originals, whole } = options;
  if (report !== undefined) await requireWritable(report, force !== undefined);
  return await auditMain({
    target,
    chamber: toOptionalInteger('--chamber', chamber),
    rpc,
    accounts,
    checkpoints,
    witnesses,
    receipts,
    proofs,
    originals,
    whole: whole !== undefined,
    maxAgeSeconds: toOptionalInteger('--max-age', options['max-age']),
    maxSkewSeconds: toOptionalInteger('--max-skew', options['max-skew']),
    origins: toList(origin),
    registries: toList(registry),
    factories: toList(factory),
    allowUnsigned: options['allow-unsigned'] !== undefined,
    allowReorganized: options['allow-reorganized'] !== undefined,
    allowSkippedIds: options['allow-skipped-ids'] !== undefined,
    allowUnpublished: options['allow-unpublished'] !== undefined,
    now: toClock(options['now']),
    limits: limitsOf(options),
    json: isJson,
    verbose: verbose !== undefined,
    outcome: outcome !== undefined,
    keep: report === undefined ? undefined : (value) => writeReport(value, options),
  });
}

function toClock(text: string | undefined): (() => number) | undefined {
  if (text === undefined) return undefined;
  const at = instantOf(text);
  if (Number.isNaN(at)) throw new CommandError('usage', '--now must be a time such as 2026-11-26T12:00:00Z');
  return () => at;
}

function limitsOf(options: Input['options']): Partial<InputLimits> {
  const names = {
    timeoutSeconds: 'timeout',
    linesMax: 'max-lines',
    accountLinesMax: 'max-account-lines',
    lineBytesMax: 'max-line-bytes',
    responseBytesMax: 'max-response-bytes',
  } as const satisfies Record<Exclude<keyof InputLimits, 'patienceMillis'>, string>;
  const given = Object.entries(names).filter(([, name]) => options[name] !== undefined);
  const { patience } = options;
  return {
    ...Object.fromEntries(given.map(([limit, name]) => [limit, toInteger(`--${name}`, options[name] ?? '', 1)])),
    ...(patience !== undefined && { patienceMillis: toMillis(patience) }),
  };
}

/** Adds the auditor's version, the time and the options. Writes only the host of the RPC, because its URL may contain a key. */
async function writeReport(
  report: object,
  { report: path = '', force, rpc, ...options }: Input['options'],
): Promise<void> {
  const auditor = { name: 'chambers audit', version: VERSION };
  const given = { ...options, ...(rpc === undefined ? {} : { rpc: new URL(rpc).host }) };
  const complete = { ...report, auditor, createdAt: new Date().toISOString(), options: given };
  await writeWhole(path, [`${JSON.stringify(complete, null, 2)}\n`], force !== undefined);
}

function toList(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').filter((item) => item !== '');
}
