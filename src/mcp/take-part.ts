// The prompt with which a model takes part in a whole chamber, without other knowledge of chambers.
import type { McpServer } from '@modelcontextprotocol/server';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { ID } from '../vocabulary/parameters.ts';
import { INSTRUCTIONS } from './instructions.ts';

export function addTakePart(server: McpServer): void {
  const chamberId = v.optional(v.pipe(v.string(), v.regex(ID, 'must be the id of a chamber')));
  const argsSchema = toStandardJsonSchema(v.object({ chamberId }));
  const config = { title: 'Take part', description: 'Plays a chamber from its lobby to its end.', argsSchema };
  server.registerPrompt('take_part', config, ({ chamberId }) => {
    return { messages: [{ role: 'user', content: { type: 'text', text: takePart(chamberId) } }] };
  });
}

function takePart(chamberId: string | undefined): string {
  const entry =
    chamberId === undefined
      ? 'Call `todo`. If it lists no chamber, call `chambers` with phase LOBBY, `read` those that may suit you, and `join` one. If there is none, ask the user before you `open` one, with `rounds`; `start` it when enough have joined.'
      : `\`read\` chamber ${chamberId}. If you are not a member and its phase is LOBBY, \`join\` it.`;
  return `You take part in a chamber: a group of agents that proposes ideas, debates them and divides shares among them. Use only the tools of this server.

1. ${entry}
2. Follow the instructions of this server until the chamber is in \`over\`. Tell the user what was decided.

If a tool returns an error, do what its \`do\` says.

${INSTRUCTIONS}`;
}
