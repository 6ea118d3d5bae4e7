// Commands about chambers, all but `create` without a key.
import type { ChamberView, IdeaView } from '../../projections/views.ts';
import { CHAMBER_ARGUMENT, type Command, type Input, KEY_OPTIONS, URL_OPTION } from './command.ts';
import { agentOf, forumOf } from './environment.ts';
import { members, print, table } from './print.ts';
import { tail } from './tail.ts';
import { toChamberId, toDeadlines, toInteger, toPhase } from './values.ts';

const LENGTHS = ['lobby', 'proposal', 'debate', 'commit', 'reveal'] as const;

const lengthOption = (phase: string) => ({
  value: 'LENGTH',
  help: `how long ${phase} lasts: 90s, 10m, 2h, 3d; 10m without it`,
});

export const chamberCommands: readonly Command[] = [
  {
    name: 'chamber create',
    summary: 'Opens a chamber, whose lobby starts now',
    args: [],
    options: {
      ...KEY_OPTIONS,
      name: { value: 'NAME', help: 'what it is about', isRequired: true },
      lobby: lengthOption('the lobby'),
      proposal: lengthOption('proposing'),
      debate: lengthOption('the debate'),
      commit: lengthOption('committing'),
      reveal: lengthOption('revealing'),
      'min-backers': { value: 'COUNT', help: 'backers that an idea needs to become a token; 1 without it' },
      'turn-seconds': { value: 'SECONDS', help: 'a turn not passed by then goes on; no limit without it' },
    },
    examples: ['chamber create --name=Garden', 'chamber create --name=Quick --lobby=1m --debate=30m --min-backers=2'],
    run: create,
  },
  {
    name: 'chamber list',
    summary: 'Lists chambers, newest first',
    args: [],
    options: {
      ...URL_OPTION,
      phase: { value: 'PHASE', help: 'only those in that phase, e.g. debate' },
      limit: { value: 'COUNT', help: 'at most so many, 1 to 200; 50 without it' },
      before: { value: 'ID', help: 'only those with a smaller id: the next page' },
    },
    examples: ['chamber list', 'chamber list --phase=lobby --json'],
    run: list,
  },
  {
    name: 'chamber show',
    summary: 'Shows a chamber: phase, turn, deadlines, ideas, root',
    args: [CHAMBER_ARGUMENT],
    options: URL_OPTION,
    examples: ['chamber show 1'],
    run: show,
  },
  {
    name: 'chamber tail',
    summary: "Follows a chamber's events until interrupted, checking that each follows the one before",
    args: [CHAMBER_ARGUMENT],
    options: {
      ...URL_OPTION,
      after: { value: 'EVENT', help: 'starts after that event; 0, the default, is everything' },
      out: {
        value: 'FILE',
        help: 'adds the lines to the file and goes on where it ends: each event once, however often it is killed',
      },
    },
    examples: ['chamber tail 1', 'chamber tail 1 --json', 'chamber tail 1 --out=chamber-1.ndjson'],
    run: tail,
  },
];

async function create(input: Input): Promise<void> {
  const { options, isJson } = input;
  const { name = '', 'min-backers': minBackers, 'turn-seconds': turnSeconds } = options;
  const lengths = LENGTHS.map((name) => options[name] ?? '10m');
  const deadlines = toDeadlines(lengths, Date.now());
  const agent = await agentOf(input);
  const created = await agent.createChamber({
    name,
    ...deadlines,
    ...(minBackers === undefined ? {} : { minBackersForGraduation: toInteger('--min-backers', minBackers, 1) }),
    ...(turnSeconds === undefined ? {} : { turnSeconds: toInteger('--turn-seconds', turnSeconds, 1) }),
  });
  print(isJson, created, members({ ...created, ...deadlines }));
}

async function list(input: Input): Promise<void> {
  const { phase, limit, before } = input.options;
  const chambers = await forumOf(input).chambers({
    ...(phase === undefined ? {} : { phase: toPhase(phase) }),
    ...(limit === undefined ? {} : { limit: toInteger('--limit', limit, 1) }),
    ...(before === undefined ? {} : { before: toInteger('--before', before, 1) }),
  });
  const rows = chambers.map((chamber) => [chamber.chamberId, chamber.phase, chamber.memberCount, chamber.name]);
  print(input.isJson, chambers, table(['ID', 'PHASE', 'MEMBERS', 'NAME'], rows, 'There is no such chamber.'));
}

async function show(input: Input): Promise<void> {
  const chamberId = toChamberId(input.args[0]);
  const forum = forumOf(input);
  const view = await forum.chamber(chamberId);
  const ideas = input.isJson ? [] : await forum.chamberIdeas(chamberId);
  print(input.isJson, view, describe(view, ideas));
}

function describe(view: ChamberView, ideas: readonly IdeaView[]): readonly string[] {
  const { deadlines, members: dids, ideas: _, ...rest } = view;
  const byTurn = dids.map((did, turnOrder) => [turnOrder, did]);
  const bySlot = ideas.map((idea) => [
    idea.ideaId,
    idea.ticker,
    idea.backers,
    idea.totalBps,
    idea.tokenAddress,
    idea.name,
  ]);
  return [
    ...members({ ...rest, ...deadlines }),
    '',
    ...table(['TURN', 'MEMBER'], byTurn, 'Nobody has joined.'),
    '',
    ...table(['IDEA', 'TICKER', 'BACKERS', 'BPS', 'TOKEN', 'NAME'], bySlot, 'No ideas yet.'),
  ];
}
