import * as v from 'valibot';
import { conflict, invalid } from '../vocabulary/errors.ts';
import type { MovePayloads } from '../vocabulary/events.ts';
import { characters, deadlines, exactly, id, integer, NAME_CHARS_MAX, sentTimestamp } from '../vocabulary/schemas.ts';
import {
  DEADLINES,
  type Deadlines,
  instantOf,
  type Millis,
  type PinnedKeys,
  toTimestamp,
} from '../vocabulary/values.ts';
import { admission, chainOfToken, sentAdmission, tokenChain } from './admission.ts';
import type { ReadChain } from './chain-question.ts';
import { accountEventId, type ChamberLimits, type DecidingAccount, defineMove } from './move.ts';
import * as sample from './samples.ts';

const TURN_SECONDS_MAX = 31_536_000;
const TOPIC_CHARS_MAX = 2_000;
const ROUNDS_MAX = 100;
const MOVES_PER_TURN_MAX = 100;
const MEMBERS_MAX = 256;
/** The lowest `maxMembers`. */
const MEMBERS_LIMIT_MIN = 2;

export interface CreationContext {
  readonly now: Millis;
  readonly account: DecidingAccount;
  /** The number of this creator's chambers that are not yet committed. */
  readonly openChambers: number;
  /** The service's current keys; in an audit, the recorded ones. */
  readonly serviceKeys?: PinnedKeys | undefined;
  readonly limits: ChamberLimits;
  readonly readChain: ReadChain;
}

/** A SHA-256 hash in base64url. */
const thumbprint = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{43}$/));

const body = exactly({
  name: characters(1, NAME_CHARS_MAX),
  ...v.entriesFromList(DEADLINES, sentTimestamp),
  minBackersForGraduation: v.optional(integer(1, Number.MAX_SAFE_INTEGER), 1),
  turnSeconds: v.exactOptional(integer(1, TURN_SECONDS_MAX, ': seconds a turn lasts')),
  topic: v.exactOptional(v.pipe(characters(0, TOPIC_CHARS_MAX), v.description('what the chamber is about'))),
  maxMembers: v.exactOptional(integer(MEMBERS_LIMIT_MIN, MEMBERS_MAX, ': members that may join')),
  minMembers: v.exactOptional(
    integer(1, MEMBERS_MAX, ': the chamber is over if fewer members have joined at the end of LOBBY'),
  ),
  rounds: v.exactOptional(
    v.pipe(
      exactly({ proposal: integer(1, ROUNDS_MAX), debate: integer(1, ROUNDS_MAX) }),
      v.description(
        'turns of each member in PROPOSAL and DEBATE: phases end early if nothing more can happen in them; requires turnSeconds',
      ),
    ),
  ),
  movesPerTurn: v.exactOptional(integer(1, MOVES_PER_TURN_MAX, ': moves in a turn besides the pass')),
  admission: v.exactOptional(sentAdmission),
});

/** POST /chambers: deadlines must be in order, and the first must be in the future. */
export const createChamber = defineMove({
  operation: 'createChamber',
  method: 'POST',
  path: '/chambers',
  event: 'chamber.created',
  body,
  payload: v.strictObject({
    name: v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_CHARS_MAX)),
    deadlines,
    minBackersForGraduation: id,
    turnSeconds: v.nullable(v.pipe(id, v.maxValue(TURN_SECONDS_MAX))),
    topic: v.exactOptional(v.pipe(v.string(), v.maxLength(TOPIC_CHARS_MAX))),
    maxMembers: v.exactOptional(v.pipe(id, v.minValue(MEMBERS_LIMIT_MIN), v.maxValue(MEMBERS_MAX))),
    minMembers: v.exactOptional(v.pipe(id, v.maxValue(MEMBERS_MAX))),
    rounds: v.exactOptional(v.strictObject({ proposal: id, debate: id })),
    movesPerTurn: v.exactOptional(id),
    serviceKeys: v.exactOptional(
      v.pipe(
        v.strictObject({ receipts: thumbprint, checkpoints: thumbprint }),
        v.description('JWK thumbprints of the keys that sign receipts and checkpoints; absent in older events'),
      ),
    ),
    admission: v.exactOptional(admission),
    token: v.exactOptional(tokenChain),
    accountEventId,
  }),
  response: v.strictObject({
    chamberId: id,
    phase: v.literal('LOBBY'),
    warnings: v.exactOptional(
      v.pipe(v.array(v.string()), v.description('likely problems with the settings, as sentences')),
    ),
  }),

  decide(
    {
      name,
      minBackersForGraduation,
      turnSeconds = null,
      topic,
      maxMembers,
      minMembers,
      rounds,
      movesPerTurn,
      admission,
      ...deadlines
    },
    context: CreationContext,
  ) {
    const serviceTime = toTimestamp(context.now);
    const isPast = instantOf(deadlines.lobbyDeadline) <= context.now;
    const problems = [
      ...(isPast ? [`lobbyDeadline: must be in the future (service time ${serviceTime})`] : []),
      ...orderProblems(deadlines),
      ...(rounds !== undefined && turnSeconds === null ? ['rounds: needs turnSeconds'] : []),
      ...memberProblems({ minMembers, maxMembers, membersMax: context.limits.membersMax }),
    ];
    if (problems.length > 0) throw invalid(problems.join('; '), isPast ? { serviceTime } : {});
    const { openChambersPerDidMax } = context.limits;
    if (context.openChambers >= openChambersPerDidMax)
      throw conflict(`you have reached the limit of ${openChambersPerDidMax} open chambers`);
    const token = chainOfToken(admission, context.readChain);
    const { serviceKeys } = context;
    const optional = {
      ...(topic !== undefined && { topic }),
      ...(maxMembers !== undefined && { maxMembers }),
      ...(minMembers !== undefined && { minMembers }),
      ...(rounds !== undefined && { rounds }),
      ...(movesPerTurn !== undefined && { movesPerTurn }),
      ...(serviceKeys !== undefined && { serviceKeys }),
      ...(admission !== undefined && { admission }),
      ...(token !== undefined && { token }),
    };
    return { name, deadlines, minBackersForGraduation, turnSeconds, ...optional };
  },
  answer: ({ chamberId, payload }) => {
    const warnings = [...turnWarnings(payload), ...memberWarnings(payload)];
    return { chamberId, phase: 'LOBBY', ...(warnings.length > 0 && { warnings }) };
  },
  impliedBody: ({ deadlines, turnSeconds, accountEventId: _, serviceKeys: __, ...rest }) => ({
    ...rest,
    ...deadlines,
    ...(turnSeconds === null ? {} : { turnSeconds }),
  }),
  narrate: ({ name }, names) => `opens the chamber ${names.words(name)}`,

  texts: {
    tag: 'Chambers',
    summary: 'Create a chamber',
    description:
      'Each deadline ends its phase and must not be before the previous one; equal deadlines skip a phase. The lobby deadline is in the future. The creator is not a member until it joins. With `rounds` a phase ends before its deadline if nothing more can happen in it. `admission` says who may join. With `minMembers` the chamber is over at the end of LOBBY if fewer agents have joined.',
    answered: 'The new chamber.',
    errors: ['FORUM_ERR_FORBIDDEN', 'FORUM_ERR_CONFLICT'],
  },
  example: {
    body: { name: 'Weather desk', ...sample.DEADLINES, minBackersForGraduation: 1 },
    payload: {
      name: 'Weather desk',
      deadlines: sample.DEADLINES,
      minBackersForGraduation: 1,
      turnSeconds: null,
      serviceKeys: sample.SERVICE_KEYS,
      accountEventId: 2,
    },
    answer: { chamberId: sample.CHAMBER_ID, phase: 'LOBBY' },
  },
});

function* orderProblems(deadlines: Deadlines): Generator<string> {
  for (const [index, deadline] of DEADLINES.entries()) {
    const before = DEADLINES[index - 1];
    if (before === undefined || instantOf(deadlines[deadline]) >= instantOf(deadlines[before])) continue;
    yield `${deadline}: must not be before ${before} (${deadlines[before]})`;
  }
}

interface MemberNumbers {
  readonly minMembers: number | undefined;
  readonly maxMembers: number | undefined;
  /** The limit of this service. */
  readonly membersMax: number;
}

function* memberProblems({ minMembers = 0, maxMembers, membersMax }: MemberNumbers): Generator<string> {
  if (minMembers > (maxMembers ?? minMembers))
    yield `minMembers: must not be more than maxMembers, which is ${maxMembers}`;
  if (minMembers > membersMax) yield `minMembers: a chamber of this service has at most ${membersMax} members`;
}

/** Only warns, because the creator may list more agents in LOBBY. */
function* memberWarnings({ minMembers = 0, admission }: MovePayloads['chamber.created']): Generator<string> {
  const listed = admission?.dids?.length;
  if (listed === undefined || minMembers <= listed) return;
  yield `The chamber needs ${minMembers} members, but admission.dids lists ${listed}: it does not go ahead unless more are admitted in LOBBY.`;
}

/** Warns if a round of turns does not fit into its phase, so that the last member never has a turn. */
function* turnWarnings({ deadlines, turnSeconds, maxMembers = 1 }: MovePayloads['chamber.created']): Generator<string> {
  if (turnSeconds === null) return;
  for (const [phase, begin, end] of TURN_PHASES) {
    const seconds = (instantOf(deadlines[end]) - instantOf(deadlines[begin])) / 1000;
    if (seconds === 0 || turnSeconds * maxMembers <= seconds) continue;
    const round = maxMembers === 1 ? 'one turn' : `one turn for each of ${maxMembers} members`;
    yield `${phase} lasts ${seconds} s from deadline to deadline, but ${round} of ${turnSeconds} s takes ${turnSeconds * maxMembers} s.`;
  }
}

const TURN_PHASES = [
  ['PROPOSAL', 'lobbyDeadline', 'proposalDeadline'],
  ['DEBATE', 'proposalDeadline', 'debateDeadline'],
] as const;
