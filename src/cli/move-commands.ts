// An agent's moves in a chamber: one command for each move that defines one, and commit and reveal, which need the salt store.
import * as v from 'valibot';
import type { Agent } from '../client/agent.ts';
import type { SendOptions } from '../client/call.ts';
import { ideaIdOf } from '../client/ideas.ts';
import { type AnyChamberMove, chamberMoves } from '../moves/registry.ts';
import { type Allocation, BPS_TOTAL } from '../vocabulary/values.ts';
import {
  CHAMBER_ARGUMENT,
  type CommandSpec,
  type Input,
  KEY_OPTION,
  SERVICE_OPTIONS,
  urlAndKeyOptions,
} from './command.ts';
import { CommandError, members, print, printMembers } from './output.ts';
import { signedCall } from './signed-call.ts';
import { toAllocation, toChamberId, toInteger, toJsonObject } from './values.ts';

const OPTIONS = { ...SERVICE_OPTIONS, ...KEY_OPTION };

export const moveCommands: readonly CommandSpec[] = [
  ...Object.values(chamberMoves).flatMap(toSpec),
  {
    name: 'move commit',
    summary: 'Commits to allocations; the salt is kept next to the key file',
    args: {
      ...CHAMBER_ARGUMENT,
      '[idea=bps...]': 'shares out of 10000, by id or ticker, e.g. idea-1=6000 or TEA=6000; the rest abstains',
    },
    options: { '--abstain': 'allocate nothing to any idea', ...OPTIONS },
    examples: ['move commit 1 idea-1=6000 idea-2=4000', 'move commit 1 --abstain'],
    run: async (input) => {
      const allocations = input.args.slice(1).map(toAllocation);
      const chamberId = toChamberId(input.args[0]);
      const abstain = input.options['abstain'] !== undefined;
      const result = await signedCall(input, (agent, call) =>
        agent.commit(chamberId, allocations, { ...call, abstain }),
      );
      print(input.isJson, result, [
        ...members({ ok: result.ok }),
        `Committed: ${sharesOf(allocations)}. This is final.`,
        `Next, once commits are closed: chambers move reveal ${chamberId}${urlAndKeyOptions(input)}`,
      ]);
    },
  },
  {
    name: 'move reveal',
    summary: "Reveals the agent's commitment",
    args: CHAMBER_ARGUMENT,
    options: {
      '--trust-service':
        'reveal even if this machine cannot verify that commits are closed, or that the commitment was made at this service',
      ...OPTIONS,
    },
    examples: ['move reveal 1'],
    run: async (input) => {
      const chamberId = toChamberId(input.args[0]);
      const trustService = input.options['trust-service'] !== undefined;
      const reveal = (agent: Agent, call: SendOptions) => agent.reveal(chamberId, { ...call, trustService });
      printMembers(input.isJson, await signedCall(input, reveal));
    },
  },
];

function sharesOf(allocations: readonly Allocation[]): string {
  const rest = allocations.reduce((left, { bps }) => left - bps, BPS_TOTAL);
  const shares = allocations.map(({ ideaId, bps }) => `${ideaId} ${bps / 100} %`);
  return [...shares, ...(rest > 0 ? [`abstained ${rest / 100} %`] : [])].join(', ');
}

function toSpec(move: AnyChamberMove): readonly CommandSpec[] {
  const { command } = move.texts;
  if (command === undefined) return [];
  const options = Object.entries(command.options ?? {});
  // The schema rejects a body without these members.
  const required = new Set<unknown>(v.safeParse(move.body, {}).issues?.map(({ path }) => path?.[0].key));
  const described = (isRequired: boolean) => {
    const those = options.filter(([, { member }]) => required.has(member) === isRequired);
    return Object.fromEntries(those.map(([name, { value, help }]) => [`--${name} <${value.toLowerCase()}>`, help]));
  };
  const run = async (input: Input) => {
    const chamberId = toChamberId(input.args[0]);
    const members = options.flatMap(([name, { member, value }]) => {
      const text = input.options[name];
      return text === undefined ? [] : [[member, toMember(`--${name}`, value, text)] as const];
    });
    const body = Object.fromEntries(members);
    checkBody(move, body);
    const named = options.find(([name, { value }]) => value === 'IDEA' && input.options[name] !== undefined);
    const makeMove = async (agent: Agent, call: SendOptions) => {
      if (named === undefined) return agent.move(move.path, chamberId, body, call);
      const [name, { member }] = named;
      // Even an id is looked up, so that the error about an unknown idea lists the known ones.
      const chamber = await agent.forum.chamber(chamberId, call);
      const ideaId = ideaIdOf(chamber, input.options[name] ?? '', 'PROPOSAL', 'DEBATE');
      return agent.move(move.path, chamberId, { ...body, [member]: ideaId }, call);
    };
    printMembers(input.isJson, await signedCall(input, makeMove));
  };
  return [
    {
      name: `move ${move.operation}`,
      summary: command.summary,
      args: CHAMBER_ARGUMENT,
      required: described(true),
      options: { ...described(false), ...OPTIONS },
      examples: [command.example],
      run,
    },
  ];
}

/** `value` is the option's placeholder in the help text. */
function toMember(option: string, value: string, text: string): unknown {
  if (value === 'JSON') return toJsonObject(option, text);
  return value === 'EVENT' ? toInteger(option, text) : text;
}

/** Throws one CommandError about all invalid options, before a request is sent. */
function checkBody({ body: schema, texts }: AnyChamberMove, body: object): void {
  const problems = v.safeParse(schema, body, { abortPipeEarly: true }).issues?.map(({ path, message }) => {
    if (path === undefined) return message;
    const member = path[0].key;
    const [name] = Object.entries(texts.command?.options ?? {}).find(([, option]) => option.member === member) ?? [];
    return `${name === undefined ? String(member) : `--${name}`} ${message}`;
  });
  if (problems !== undefined) throw new CommandError('usage', problems.join('; '));
}
