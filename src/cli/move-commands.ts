// The moves of an agent in a chamber.
import type { JsonObject } from '../vocabulary/values.ts';
import { CHAMBER_ARGUMENT, type Command, type Input, KEY_OPTIONS } from './command.ts';
import { agentOf } from './environment.ts';
import { UsageError } from './failure.ts';
import { members, print } from './print.ts';
import { toAllocation, toChamberId } from './values.ts';

export const moveCommands: readonly Command[] = [
  {
    name: 'move join',
    summary: 'Joins a chamber in its lobby',
    args: [CHAMBER_ARGUMENT],
    options: KEY_OPTIONS,
    examples: ['move join 1'],
    run: async (input) => tell(input, await (await agentOf(input)).joinChamber(chamberOf(input))),
  },
  {
    name: 'move propose',
    summary: 'Proposes an idea, in turn',
    args: [CHAMBER_ARGUMENT],
    options: {
      ...KEY_OPTIONS,
      name: { value: 'NAME', help: 'name of the idea', isRequired: true },
      ticker: { value: 'TICKER', help: '1–32 of A–Z a–z 0–9 _ . -', isRequired: true },
      description: { value: 'TEXT', help: 'what it is' },
    },
    examples: ['move propose 1 --name="River Sensors" --ticker=RIVER --description="Tools that listen to rivers"'],
    run: propose,
  },
  {
    name: 'move debate',
    summary: 'Comments, in turn',
    args: [CHAMBER_ARGUMENT],
    options: {
      ...KEY_OPTIONS,
      comment: { value: 'TEXT', help: 'what to say', isRequired: true },
      idea: { value: 'IDEA', help: 'the idea it is about, e.g. idea-1' },
      refinement: { value: 'JSON', help: 'an object with anything in it' },
    },
    examples: ['move debate 1 --idea=idea-1 --comment="Who measures?"'],
    run: debate,
  },
  {
    name: 'move pass',
    summary: 'Ends the turn',
    args: [CHAMBER_ARGUMENT],
    options: KEY_OPTIONS,
    examples: ['move pass 1'],
    run: async (input) => tell(input, await (await agentOf(input)).pass(chamberOf(input))),
  },
  {
    name: 'move commit',
    summary: 'Commits to allocations; the salt is kept beside the key file',
    args: [
      CHAMBER_ARGUMENT,
      { name: 'IDEA=BPS', help: 'shares of 10000, e.g. idea-1=6000; none abstains', arity: 'rest' },
    ],
    options: KEY_OPTIONS,
    examples: ['move commit 1 idea-1=6000 idea-2=4000', 'move commit 1'],
    run: commit,
  },
  {
    name: 'move reveal',
    summary: 'Reveals what was committed to',
    args: [CHAMBER_ARGUMENT],
    options: KEY_OPTIONS,
    examples: ['move reveal 1'],
    run: async (input) => tell(input, await (await agentOf(input)).reveal(chamberOf(input))),
  },
];

async function propose(input: Input): Promise<void> {
  const { name = '', ticker = '', description = '' } = input.options;
  const agent = await agentOf(input);
  tell(input, await agent.propose(chamberOf(input), { name, ticker, description }));
}

async function debate(input: Input): Promise<void> {
  const { comment = '', idea = null, refinement } = input.options;
  const refined = refinement === undefined ? {} : { refinement: toObject(refinement) };
  const agent = await agentOf(input);
  tell(input, await agent.debate(chamberOf(input), { ideaId: idea, comment, ...refined }));
}

async function commit(input: Input): Promise<void> {
  const allocations = input.args.slice(1).map(toAllocation);
  const agent = await agentOf(input);
  tell(input, await agent.commit(chamberOf(input), allocations));
}

function chamberOf({ args }: Input): number {
  return toChamberId(args[0]);
}

function tell({ isJson }: Input, answer: object): void {
  print(isJson, answer, members(answer));
}

function toObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Told below.
  }
  throw new UsageError(`--refinement must be a JSON object, e.g. '{"scale":2}', not “${text}”`);
}
