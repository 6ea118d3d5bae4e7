// Chambers and their allocations (specification, Endpoints, Chambers and Allocations).
import * as v from 'valibot';
import { phaseAt } from '../../projections/phase.ts';
import {
  type AllocationsView,
  allocationsView,
  type ChamberItemView,
  type ChamberView,
  chamberView,
} from '../../projections/views.ts';
import { parseDid } from '../crypto/did-key.ts';
import { admission } from '../moves/admission.ts';
import * as sample from '../moves/samples.ts';
import { DID_SCHEMA, LIST_LIMIT, limitParameter, NATURAL, query } from '../vocabulary/endpoint.ts';
import { invalid } from '../vocabulary/errors.ts';
import { parseCursor, parseInteger, parseSwitch, requireQuery } from '../vocabulary/parameters.ts';
import {
  allocation,
  bytes,
  count,
  deadlines,
  did,
  hash,
  id,
  ideaId,
  sentHash,
  timestamp,
} from '../vocabulary/schemas.ts';
import { isPhase, PHASES, type Phase } from '../vocabulary/values.ts';
import { json, jsonText } from './response.ts';
import { type Route, readRoute } from './route.ts';

const phase = v.picklist(PHASES);
const item = { chamberId: id, phase, name: v.string(), deadlines };

const phaseEndsAt = v.nullable(timestamp);

export const chamberItem: v.GenericSchema<ChamberItemView> = v.strictObject({
  ...item,
  memberCount: count,
  phaseEndsAt: v.exactOptional(
    v.pipe(phaseEndsAt, v.description('with `ends=1`: when the phase ends, as of now; null for COMMITTED')),
  ),
});

const chamber: v.GenericSchema<ChamberView> = v.strictObject({
  ...item,
  minBackersForGraduation: id,
  turnSeconds: v.pipe(v.nullable(id), v.description('seconds that a turn lasts; null: no limit')),
  topic: v.pipe(v.nullable(v.string()), v.description('what the chamber is about')),
  maxMembers: v.pipe(v.nullable(id), v.description('maximum number of members; null: MEMBERS_MAX')),
  minMembers: v.pipe(
    v.nullable(id),
    v.description('if fewer members have joined when LOBBY ends, the chamber is over; null: no minimum'),
  ),
  quorate: v.pipe(
    v.nullable(v.boolean()),
    v.description('whether at least `minMembers` members joined; null in LOBBY and without `minMembers`'),
  ),
  rounds: v.pipe(
    v.nullable(v.strictObject({ proposal: id, debate: id })),
    v.description('turns of each member in PROPOSAL and DEBATE; null: phases end only at their deadlines'),
  ),
  movesPerTurn: v.pipe(v.nullable(id), v.description('moves that a turn may have besides the pass; null: no limit')),
  admission: v.pipe(
    v.nullable(admission),
    v.description('who may join, including agents added later; null: everybody'),
  ),
  ends: v.pipe(
    v.strictObject({ lobby: timestamp, proposal: timestamp, debate: timestamp, commit: timestamp, reveal: timestamp }),
    v.description('when each phase ended, or the latest time at which it will end, as of now'),
  ),
  members: v.pipe(v.array(did), v.description('in turn order')),
  currentTurnAgent: v.pipe(v.nullable(did), v.description('null outside PROPOSAL and DEBATE')),
  now: v.pipe(timestamp, v.description('the service’s time')),
  phaseEndsAt: v.pipe(phaseEndsAt, v.description('from `ends`; null for COMMITTED')),
  turnEndsAt: v.pipe(v.nullable(timestamp), v.description('null if there is no turn or turns have no time limit')),
  ideas: v.array(
    v.strictObject({ ideaId, ticker: v.string(), name: v.string(), creator: did, version: id, withdrawn: v.boolean() }),
  ),
  merkleRoot: v.pipe(v.nullable(hash('root over the events of the chamber')), v.description('null until committed')),
  committedAt: v.pipe(v.nullable(timestamp), v.description('time of the block; null until committed')),
  committedTxHash: v.pipe(v.nullable(hash('transaction')), v.description('null until committed')),
  commitStatus: v.picklist(['open', 'pending', 'submitted', 'committed']),
});

const allocations: v.GenericSchema<AllocationsView> = v.strictObject({
  chamberId: id,
  phase,
  committed: v.array(v.strictObject({ did, commitment: sentHash('as committed') })),
  revealed: v.array(v.strictObject({ did, allocations: v.array(allocation), salt: bytes('as revealed') })),
  tally: v.pipe(
    v.array(v.strictObject({ ideaId, backers: count, totalBps: count })),
    v.description('one for each idea from ALLOCATE_REVEAL on; empty before'),
  ),
});

const itemExample = {
  chamberId: sample.CHAMBER_ID,
  phase: 'DEBATE',
  name: 'Weather desk',
  deadlines: sample.DEADLINES,
} as const;

export const chamberRoutes: readonly Route[] = [
  readRoute({
    path: '/chambers',
    operationId: 'listChambers',
    tag: 'Chambers',
    summary: 'List chambers, newest first',
    description:
      '`phase=LOBBY` lists those that can be joined. For the next page, send the smallest `chamberId` of this one as `before`.',
    parameters: [
      query('phase', 'only chambers in this phase', { type: 'string', enum: PHASES }),
      query('member', 'only chambers that this agent has joined', DID_SCHEMA),
      limitParameter(LIST_LIMIT),
      query('before', 'only chambers with a smaller id: the next page', NATURAL),
      query(
        'ends',
        '`1`: each item also has `phaseEndsAt`, which can be before the deadline in a chamber with rounds',
        { type: 'string', enum: ['1'] },
      ),
    ],
    returns: 'The chambers.',
    name: 'ChamberItems',
    schema: v.array(chamberItem),
    example: [{ ...itemExample, memberCount: 2 }],
    handle: async ({ forum }, c) => {
      requireQuery(c.req.url, ['phase', 'member', 'limit', 'before', 'ends']);
      const phase = parsePhase(c.req.query('phase'));
      const limit = parseInteger('limit', c.req.query('limit'), LIST_LIMIT) ?? LIST_LIMIT.fallback;
      const before = parseCursor('before', c.req.query('before'));
      const member = c.req.query('member');
      if (member !== undefined && parseDid(member) === undefined) throw invalid('member: must be a did:key');
      const withEnds = parseSwitch('ends', c.req.query('ends'));
      const listed = await forum.chambers({ member, phase, limit, before });
      return json(withEnds ? listed : listed.map(({ phaseEndsAt: _, ...chamber }) => chamber));
    },
  }),
  readRoute({
    path: '/chambers/:id',
    operationId: 'getChamber',
    tag: 'Chambers',
    summary: 'The full view of a chamber',
    description:
      'Phase, turn and their ends are as of `now`, the service’s time. The lines themselves are in `GET /chambers/{id}/events`.',
    returns: 'The chamber.',
    name: 'Chamber',
    schema: chamber,
    example: {
      ...itemExample,
      minBackersForGraduation: 1,
      turnSeconds: null,
      topic: null,
      maxMembers: null,
      minMembers: null,
      quorate: null,
      rounds: null,
      movesPerTurn: null,
      admission: null,
      ends: {
        lobby: sample.DEADLINES.lobbyDeadline,
        proposal: sample.DEADLINES.proposalDeadline,
        debate: sample.DEADLINES.debateDeadline,
        commit: sample.DEADLINES.allocateCommitDeadline,
        reveal: sample.DEADLINES.allocateRevealDeadline,
      },
      members: [sample.ALICE, sample.BOB],
      currentTurnAgent: sample.ALICE,
      now: '2030-01-01T12:25:00.000Z',
      phaseEndsAt: sample.DEADLINES.debateDeadline,
      turnEndsAt: null,
      ideas: [
        {
          ideaId: 'idea-1',
          ticker: 'RAIN',
          name: sample.IDEA.name,
          creator: sample.ALICE,
          version: 1,
          withdrawn: false,
        },
      ],
      merkleRoot: null,
      committedAt: null,
      committedTxHash: null,
      commitStatus: 'open',
    },
    handle: async ({ forum }, c) => {
      const { state } = await forum.findChamber(c.req.param('id'));
      return json(chamberView(state, forum.now()));
    },
  }),
  readRoute({
    path: '/chambers/:id/allocations',
    operationId: 'getAllocations',
    tag: 'Allocations',
    summary: 'Commitments, reveals and the tally',
    description:
      'The members that have committed; from ALLOCATE_REVEAL on, also the reveals and the tally of each idea.',
    returns: 'The allocations.',
    name: 'Allocations',
    schema: allocations,
    example: {
      chamberId: sample.CHAMBER_ID,
      phase: 'ALLOCATE_REVEAL',
      committed: [{ did: sample.ALICE, commitment: sample.COMMITMENT }],
      revealed: [{ did: sample.ALICE, allocations: sample.ALLOCATIONS, salt: sample.SALT }],
      tally: [{ ideaId: 'idea-1', backers: 1, totalBps: 6000 }],
    },
    handle: async ({ forum, responses }, c) => {
      const cache = responses.open();
      const { state } = await forum.findChamber(c.req.param('id'));
      const now = forum.now();
      // The response for a full chamber is several megabytes long.
      const { bytes } = await cache.body(['allocations', state.chamberId, state.lastEventId, phaseAt(state, now)], () =>
        JSON.stringify(allocationsView(state, now)),
      );
      return jsonText(bytes);
    },
  }),
];

function parsePhase(text: string | undefined): Phase | undefined {
  if (text === undefined || isPhase(text)) return text;
  throw invalid(`phase: must be one of ${PHASES.join(', ')}`);
}
