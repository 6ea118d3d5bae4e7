// The command that trusts nobody: checks lines, decisions, views and root.
import { auditMain } from '../audit/main.ts';
import type { Command, Input } from './command.ts';
import { toChamberId } from './values.ts';

export const auditCommand: Command = {
  name: 'audit',
  summary: 'Checks every line, signature, decision and root of a service or an exported file',
  args: [{ name: 'FILE|URL', help: 'an exported file, - for standard input, or the base URL of a service' }],
  options: {
    chamber: { value: 'ID', help: 'the chamber; without it all of a service' },
    rpc: { value: 'URL', help: 'JSON-RPC of the chain that holds the root' },
    registry: { value: 'ADDRESS', help: 'the ChamberRegistry there' },
  },
  examples: ['audit chamber-1.ndjson', 'audit http://127.0.0.1:8787 --chamber=1 --json'],
  run,
};

async function run({ args, options, isJson }: Input): Promise<number> {
  const { chamber, rpc, registry } = options;
  return await auditMain({
    target: args[0] ?? '',
    json: isJson,
    ...(chamber === undefined ? {} : { chamber: toChamberId(chamber) }),
    ...(rpc === undefined ? {} : { rpc }),
    ...(registry === undefined ? {} : { registry }),
  });
}
