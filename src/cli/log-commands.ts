// Commands about a chamber's log: taking it out, and checking it.
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { CHAMBER_ARGUMENT, type Command, type Input, URL_OPTION } from './command.ts';
import { forumOf } from './environment.ts';
import { toChamberId, toInteger } from './values.ts';

export const logCommands: readonly Command[] = [
  {
    name: 'audit',
    summary: 'Checks chambers whole from their lines: signatures, decisions, views, roots',
    args: [{ name: 'TARGET', help: 'the base URL of a service, an exported file, or - for standard input' }],
    options: {
      chamber: { value: 'ID', help: 'only that chamber of a service' },
      rpc: { value: 'URL', help: 'RPC of the chain, to compare the root with; with --registry' },
      registry: { value: 'ADDRESS', help: 'the ChamberRegistry on it' },
    },
    examples: ['audit chamber-1.ndjson', 'audit http://127.0.0.1:8787 --chamber=1 --json'],
    run: audit,
  },
  {
    name: 'export',
    summary: "Writes a chamber's lines as they are stored, checking that each follows the one before",
    args: [
      { name: 'URL', help: 'the base URL of the service; may be left out, then --url counts' },
      { ...CHAMBER_ARGUMENT, arity: 'optional' },
    ],
    options: { ...URL_OPTION, out: { value: 'FILE', help: 'the file to write; standard output without it' } },
    examples: ['export http://127.0.0.1:8787 1 > chamber-1.ndjson', 'export 1 --out=chamber-1.ndjson'],
    run: exportLines,
  },
];

async function audit({ args: [target = ''], options, isJson }: Input): Promise<number> {
  const { auditMain } = await import('../audit/main.ts');
  const { chamber, rpc, registry } = options;
  return await auditMain({
    target,
    json: isJson,
    ...(chamber === undefined ? {} : { chamber: toInteger('--chamber', chamber, 1) }),
    ...(rpc === undefined ? {} : { rpc }),
    ...(registry === undefined ? {} : { registry }),
  });
}

/** Lines are JSON whether or not --json is given. */
async function exportLines(input: Input): Promise<void> {
  const { out } = input.options;
  const [first = '', second] = input.args;
  const source = second === undefined ? input : { ...input, options: { ...input.options, url: first } };
  const lines = forumOf(source).history(toChamberId(second ?? first));
  const target = out === undefined ? process.stdout : createWriteStream(out);
  for await (const { line } of lines) if (!target.write(`${line}\n`)) await once(target, 'drain');
  if (out !== undefined) await finished(target.end());
}
