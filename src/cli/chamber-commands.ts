import { phaseEnd } from '../../projections/phase.ts';
import { type AllocationsView, type ChamberView, ENDS } from '../../projections/views.ts';
import { readDids } from '../http/access-list.ts';
import { type Admission, instantOf, PHASES, type TokenRule, toTimestamp } from '../vocabulary/values.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { CHAMBER_ARGUMENT, type CommandSpec, type Input, KEY_OPTION, SERVICE_OPTIONS } from './command.ts';
import { forumOf, interruptible } from './environment.ts';
import { CommandError, members, print, printMembers, printNotice, table } from './output.ts';
import { signedCall } from './signed-call.ts';
import { leftUntil, summary } from './summary.ts';
import { toChamberId, toDeadlines, toOptionalInteger, toPhase, toRounds } from './values.ts';

const DEFAULT_LENGTH = '10m';

export const chamberCommands: readonly CommandSpec[] = [
  {
    name: 'chamber create',
    summary: 'Creates a chamber; its lobby starts now',
    required: { '--name <name>': "the chamber's name" },
    options: {
      ...Object.fromEntries(
        ENDS.map((phase) => [
          `--${phase} <length>`,
          `length of the ${phase} phase: 90s, 10m, 2h, 3d (default: ${DEFAULT_LENGTH})`,
        ]),
      ),
      '--min-backers <count>': 'backers that an idea needs to become a token (default: 1)',
      '--turn-seconds <seconds>': 'seconds after which a turn passes to the next member (default: no limit)',
      '--rounds <counts>':
        'turns of each member in proposal and debate, e.g. 2,3: phases end once all turns are over; needs --turn-seconds',
      '--moves-per-turn <count>': 'moves that a member may make in a turn before passing (default: no limit)',
      '--topic <text>': 'what the chamber is about, in a few sentences',
      '--min-members <count>': 'members that must join, 1 to 256: with fewer, the chamber ends when its lobby does',
      '--max-members <count>':
        'members that may join, 2 to 256; with --rounds, the last one to join starts the chamber',
      '--admit <file>': 'file of the DIDs that may join, one per line; # starts a comment (default: everybody)',
      '--proven-wallets': 'only agents with a proven wallet may join, one for each wallet',
      '--token <address>': 'ERC-20 or ERC-721 contract: only agents whose proven wallet holds it may join',
      '--min-balance <count>': 'required balance of the token, in its smallest unit (default: 1)',
      '--token-at <moment>': 'when the balance is read: join (default), or creation',
      ...SERVICE_OPTIONS,
      ...KEY_OPTION,
    },
    examples: [
      'chamber create --name=Garden',
      'chamber create --name=Quick --rounds=2,3 --turn-seconds=60 --max-members=4',
    ],
    run: create,
  },
  {
    name: 'chamber list',
    summary: 'Lists chambers, newest first',
    options: {
      '--phase <phase>': 'only chambers in this phase, e.g. debate',
      '--limit <count>': 'at most this many, 1 to 200 (default: 50)',
      '--before <id>': 'only chambers with a smaller id: the next page',
      ...SERVICE_OPTIONS,
    },
    examples: ['chamber list', 'chamber list --phase=lobby --json'],
    run: list,
  },
  {
    name: 'chamber wait',
    summary: 'Waits until a chamber is in a phase',
    args: { ...CHAMBER_ARGUMENT, '<phase>': 'e.g. debate' },
    options: SERVICE_OPTIONS,
    examples: ['chamber wait 1 debate'],
    run: waitFor,
  },
  {
    name: 'chamber show',
    summary: 'Shows a chamber: phase, turn, deadlines, ideas, root',
    args: CHAMBER_ARGUMENT,
    options: SERVICE_OPTIONS,
    examples: ['chamber show 1'],
    run: show,
  },
];

async function create(input: Input): Promise<void> {
  const { options, isJson } = input;
  const { name = '', topic } = options;
  if (options['rounds'] !== undefined && options['turn-seconds'] === undefined)
    throw new CommandError('usage', '--rounds needs --turn-seconds');
  const lengths = ENDS.map((phase) => options[phase] ?? DEFAULT_LENGTH);
  const deadlines = toDeadlines(lengths, Date.now());
  const chamber = {
    name,
    ...deadlines,
    topic,
    maxMembers: toOptionalInteger('--max-members', options['max-members']),
    minMembers: toOptionalInteger('--min-members', options['min-members']),
    minBackersForGraduation: toOptionalInteger('--min-backers', options['min-backers']),
    turnSeconds: toOptionalInteger('--turn-seconds', options['turn-seconds']),
    rounds: toRounds(options['rounds']),
    movesPerTurn: toOptionalInteger('--moves-per-turn', options['moves-per-turn']),
    admission: admissionOf(options),
  };
  const created = await signedCall(input, (agent, call) => agent.createChamber(chamber, call));
  const forum = forumOf(input);
  const now = new Date(forum.service.clock.now()).toISOString();
  const times = { now, phaseEndsAt: deadlines.lobbyDeadline, turnEndsAt: null, currentTurnAgent: null };
  const { warnings = [] } = created;
  print(isJson, created, [
    ...summary({ ...created, name, ...times }, forum, input),
    ...warnings.map((warning) => `Warning: ${warning}`),
    '',
    ...members(deadlines),
  ]);
}

/** Returns undefined if everybody may join. */
function admissionOf(options: Input['options']): Admission | undefined {
  const token = options['token'];
  if (token === undefined && (options['min-balance'] ?? options['token-at']) !== undefined) {
    throw new CommandError('usage', '--min-balance and --token-at need --token');
  }
  const rules = {
    ...(options['admit'] !== undefined && { dids: readAdmittedDids(options['admit']) }),
    ...(options['proven-wallets'] !== undefined && { provenWallets: true as const }),
    ...(token !== undefined && { token: tokenRule(token, options) }),
  };
  return Object.keys(rules).length === 0 ? undefined : rules;
}

function readAdmittedDids(path: string): readonly string[] {
  try {
    return [...readDids(path)];
  } catch (error) {
    throw new CommandError('usage', `--admit: ${(error as Error).message}`);
  }
}

function tokenRule(address: string, options: Input['options']): TokenRule {
  const { 'min-balance': minBalance = '1', 'token-at': at = 'join' } = options;
  if (at === 'join' || at === 'creation') return { address, minBalance, at };
  throw new CommandError('usage', `--token-at must be join or creation, not “${at}”`);
}

async function list(input: Input): Promise<void> {
  const { phase, limit, before } = input.options;
  const forum = forumOf(input);
  const chambers = await forum.chambers({
    phase: phase === undefined ? undefined : toPhase(phase),
    limit: toOptionalInteger('--limit', limit),
    before: toOptionalInteger('--before', before),
    ends: 1,
  });
  const now = new Date(forum.service.clock.now()).toISOString();
  const rows = chambers.map(({ chamberId, phase, phaseEndsAt, memberCount, name }) => {
    return [chamberId, phase, phaseEndsAt && leftUntil(phaseEndsAt, now), memberCount, name];
  });
  const empty = 'No chambers found. Next: chambers chamber create --name=NAME';
  print(input.isJson, chambers, table(['ID', 'PHASE', 'LEFT', 'MEMBERS', 'NAME'], rows, empty));
}

/** Prints each phase before the awaited one, with its deadline. Throws a CommandError if the awaited phase is over. */
async function waitFor(input: Input): Promise<void> {
  const [chamberId, awaited] = [toChamberId(input.args[0]), toPhase(input.args[1] ?? '')];
  await interruptible(new CommandError('failure', 'interrupted'), async (signal) => {
    for await (const { phase, state } of forumOf(input).watch(chamberId, { signal })) {
      if (PHASES.indexOf(phase) < PHASES.indexOf(awaited)) {
        const end = toTimestamp(phaseEnd(state, phase) ?? 0);
        printNotice(
          input.isJson,
          `waiting for ${awaited}: chamber ${chamberId} is in ${phase} until ${end} at the latest`,
        );
        continue;
      }
      if (phase === awaited) return printMembers(input.isJson, { chamberId, phase });
      throw new CommandError('conflict', `chamber ${chamberId} is in ${phase}: ${awaited} is over`);
    }
  });
}

const IDEA_COLUMNS = ['ideaId', 'ticker', 'version', 'backers', 'totalBps', 'tokenAddress', 'name'] as const;

async function show(input: Input): Promise<void> {
  const chamberId = toChamberId(input.args[0]);
  const forum = forumOf(input);
  const view = await forum.chamber(chamberId);
  const { members: dids } = view;
  const ideas = input.isJson ? [] : await forum.chamberIdeas(chamberId);
  const isAllocating = view.phase === 'ALLOCATE_COMMIT' || view.phase === 'ALLOCATE_REVEAL';
  const allocations = input.isJson || !isAllocating ? undefined : await forum.allocations(chamberId);
  const isOver = view.phase === 'ALLOCATE_REVEAL' && view.phaseEndsAt !== null && view.phaseEndsAt <= view.now;
  const problem = input.isJson || !isOver ? undefined : (await forum.health()).chain?.relayer?.reason;
  const rows = ideas.map((idea) => [...IDEA_COLUMNS.map((column) => idea[column]), idea.withdrawn ? 'withdrawn' : '']);
  print(input.isJson, view, [
    ...summary(view, forum, input),
    ...(problem === undefined ? [] : [`The relayer reports: ${visibleLine(problem)}`]),
    ...(allocations === undefined ? [] : [progress(view, allocations)]),
    '',
    ...settingRows(view),
    ...phaseRows(view),
    '',
    ...table(['TURN', 'MEMBER'], [...dids.entries()], 'No members yet.'),
    '',
    ...table(['IDEA', 'TICKER', 'VERSION', 'BACKERS', 'BPS', 'TOKEN', 'NAME', ''], rows, 'No ideas yet.'),
  ]);
}

function progress({ members: { length } }: ChamberView, { phase, committed, revealed }: AllocationsView): string {
  const commits = `committed: ${committed.length} of ${length}`;
  return phase === 'ALLOCATE_COMMIT' ? commits : `${commits}; revealed: ${revealed.length} of ${committed.length}`;
}

function settingRows(view: ChamberView): readonly string[] {
  const { topic, minBackersForGraduation, turnSeconds, rounds, movesPerTurn, admission, ...rest } = view;
  const { minMembers = null, maxMembers, quorate = null, merkleRoot, committedTxHash } = rest;
  const set = Object.entries({
    ...{ topic, minBackersForGraduation, turnSeconds, rounds, movesPerTurn, minMembers, maxMembers, quorate },
    ...{ admission, merkleRoot, committedTxHash },
  }).filter(([, value]) => value !== null);
  return [...members(Object.fromEntries(set)), ''];
}

function phaseRows({ phase, ends, now, committedAt }: ChamberView): readonly string[] {
  const rows = Object.values(ends).map((end, index) => {
    const isCurrent = PHASES[index] === phase;
    const left = instantOf(end) <= instantOf(now) ? 'ended' : isCurrent ? `${leftUntil(end, now)} left` : '';
    return [PHASES[index], end, left];
  });
  return table(
    ['PHASE', 'ENDS', ''],
    committedAt === null ? rows : [...rows, ['COMMITTED', committedAt, 'time of the block']],
  );
}
