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
    '--chamber <id>': 'only that chamber of a service',
    '--accounts <file>':
      "the members' accounts, from export --with-accounts; read from the service if the target is one",
    '--rpc <url>': 'RPC of the chain, to compare root and tokens with; requires --registry',
    '--checkpoints <file>': 'checkpoints of the service that you kept: its log must extend each of them',
    '--witnesses <file>': 'trust policy (C2SP tlog-policy) of the witnesses whose cosignatures count',
    '--receipts <file>':
      'receipts that you kept, such as the folder next to a key file: the lines must have what they promise',
    '--originals <file>':
      'lines that you kept from before their texts were withheld: each is compared with what replaced it',
    '--whole': 'a chamber with withheld texts is undecided unless --originals has them',
    '--proofs <folder>': 'where to write proofs that the service broke what it signed (default: proofs)',
    '--max-age <seconds>': "the service's SIGNATURE_MAX_AGE_SECONDS",
    '--max-skew <seconds>': "the service's SIGNATURE_MAX_SKEW_SECONDS",
    '--allow-unsigned': 'accept moves without a signature, as in a log of development mode',
    '--allow-reorganized': 'with --rpc: accept transactions in other blocks than recorded',
    '--allow-unpublished': 'accept accounts that begin with lines that releases before schema 4 did not publish',
    '--allow-skipped-ids': 'accept ids that no chamber of the service has: a restore may have skipped them',
    '--now <time>':
      'the time of the audit (ISO 8601, UTC; default: that of this machine): no line may have a later time',
    '--timeout <seconds>':
      'how long a service or a chain may be silent (default: 30; a response takes at most 20 times as long)',
    '--patience <length>':
      'how long to try while the service is away, e.g. 60s (default: not again; the chain is asked once)',
    '--max-lines <count>': `of a chamber (default: ${withCommas(INPUT_LIMITS.linesMax)})`,
    '--max-account-lines <count>': `of an account (default: ${withCommas(INPUT_LIMITS.accountLinesMax)})`,
    '--max-line-bytes <count>': `of a line (default: ${withCommas(INPUT_LIMITS.lineBytesMax)})`,
    '--max-response-bytes <count>': `of any other response (default: ${withCommas(INPUT_LIMITS.responseBytesMax)})`,
    '--outcome': "print the chamber's outcome instead of the report, in the bytes of GET /chambers/:id/outcome",
    '--verbose': 'print every check of every chamber',
    '--report <file>': 'write the report of --json to a file, with version, time and options',
    '--force': 'replace the file if it exists',
  },
  repeatable: {
    '--registry <address>': "the ChamberRegistry, from the operator's publications and not from the log",
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
    keep: report === undefined ? undefined : (value) => keep(value, options),
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

/** Adds the auditor's version, the time and the options. Only the host of the RPC is written: its URL may contain a key. */
async function keep(report: object, { report: path = '', force, rpc, ...options }: Input['options']): Promise<void> {
  const auditor = { name: 'chambers audit', version: VERSION };
  const given = { ...options, ...(rpc === undefined ? {} : { rpc: new URL(rpc).host }) };
  const kept = { ...report, auditor, createdAt: new Date().toISOString(), options: given };
  await writeWhole(path, [`${JSON.stringify(kept, null, 2)}\n`], force !== undefined);
}

function toList(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').filter((item) => item !== '');
}
