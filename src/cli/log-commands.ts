// Commands about a chamber's log.
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { CHAMBER_ARGUMENT, type Command, type Input, URL_OPTION } from './command.ts';
import { forumOf } from './environment.ts';
import { toChamberId } from './values.ts';

export const logCommands: readonly Command[] = [
  {
    name: 'export',
    summary: "Writes a chamber's lines as they are stored, checking that each follows the one before",
    args: [CHAMBER_ARGUMENT],
    options: { ...URL_OPTION, out: { value: 'FILE', help: 'the file to write; standard output without it' } },
    examples: ['export 1 > chamber-1.ndjson', 'export 1 --out=chamber-1.ndjson'],
    run: exportLines,
  },
];

/** Lines are JSON whether or not --json is given. */
async function exportLines(input: Input): Promise<void> {
  const { out } = input.options;
  const lines = forumOf(input).history(toChamberId(input.args[0]));
  const target = out === undefined ? process.stdout : createWriteStream(out);
  for await (const { line } of lines) if (!target.write(`${line}\n`)) await once(target, 'drain');
  if (out !== undefined) await finished(target.end());
}
