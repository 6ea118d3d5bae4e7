// One line of each type of event, as a stream sends it (parsed). Their hashes are made up; their shapes are checked.
import { contentDigestOf } from '../crypto/content-digest.ts';
import { MOVE_PATHS } from '../vocabulary/commands.ts';
import type { ChamberEvent, MoveEvent, RequestEvidence, ServiceEvent } from '../vocabulary/events.ts';
import { NO_PREVIOUS } from '../vocabulary/values.ts';
import * as sample from './samples.ts';

type Examples = { readonly [Type in ChamberEvent['type']]: Extract<ChamberEvent, { readonly type: Type }> };
type PayloadOf<Type extends ChamberEvent['type']> = Extract<ChamberEvent, { readonly type: Type }>['payload'];

const moves: Pick<Examples, MoveEvent['type']> = {
  'chamber.created': {
    ...move(1, '/chambers', { name: 'Weather desk', ...sample.DEADLINES, minBackersForGraduation: 1 }),
    prev: NO_PREVIOUS,
    type: 'chamber.created',
    payload: { name: 'Weather desk', deadlines: sample.DEADLINES, minBackersForGraduation: 1, turnSeconds: null },
  },
  'chamber.joined': { ...move(2, pathOf('join'), {}), type: 'chamber.joined', payload: { turnOrder: 0 } },
  'chamber.proposed': {
    ...move(4, pathOf('propose'), sample.IDEA),
    type: 'chamber.proposed',
    payload: { ideaId: 'idea-1', slot: 1, ...sample.IDEA, creatorWallet: sample.WALLET },
  },
  'chamber.debated': {
    ...move(6, pathOf('debate'), { ideaId: 'idea-1', comment: sample.COMMENT }),
    type: 'chamber.debated',
    payload: { ideaId: 'idea-1', comment: sample.COMMENT, refinement: null },
  },
  'chamber.passed': {
    ...move(7, pathOf('pass'), {}),
    type: 'chamber.passed',
    payload: { nextTurnAgent: sample.BOB },
  },
  'allocation.committed': {
    ...move(8, pathOf('commit'), { commitment: sample.COMMITMENT }),
    type: 'allocation.committed',
    payload: { commitment: sample.COMMITMENT },
  },
  'allocation.revealed': {
    ...move(9, pathOf('reveal'), { allocations: sample.ALLOCATIONS, salt: sample.SALT }),
    type: 'allocation.revealed',
    payload: { allocations: sample.ALLOCATIONS, salt: sample.SALT },
  },
};

const transaction = { chainId: 31337, nonce: 3, txHash: sample.TX_HASH, rawTransaction: sample.RAW_TRANSACTION };

const services: Pick<Examples, ServiceEvent['type']> = {
  'relay.commit_submitted': service(10, 'relay.commit_submitted', transaction),
  'chamber.committed': service(11, 'chamber.committed', {
    merkleRoot: sample.ROOT,
    eventCount: 9,
    txHash: sample.TX_HASH,
    blockNumber: 1204,
    committedAt: '2030-01-01T12:50:04.000Z',
  }),
  'relay.deploy_submitted': service(12, 'relay.deploy_submitted', { ideaId: 'idea-1', ...transaction, nonce: 4 }),
  'idea.deployed': service(13, 'idea.deployed', {
    ideaId: 'idea-1',
    tokenAddress: sample.TOKEN,
    txHash: sample.TX_HASH,
    graduatedAt: '2030-01-01T12:50:06.000Z',
  }),
  'idea.deploy_failed': service(14, 'idea.deploy_failed', {
    ideaId: 'idea-2',
    txHash: null,
    reason: 'TickerTaken("RAIN")',
  }),
};

export const eventExamples: Examples = { ...moves, ...services };

function move(eventId: number, path: string, body: unknown) {
  const { chamberId, did } = { chamberId: sample.CHAMBER_ID, did: sample.ALICE };
  return { eventId, chamberId, did, ts: timestampOf(eventId), prev: sample.PREV, request: evidence(path, body) };
}

function service<Type extends ServiceEvent['type']>(eventId: number, type: Type, payload: PayloadOf<Type>) {
  const common = { did: null, request: null, chamberId: sample.CHAMBER_ID, prev: sample.PREV };
  return { ...common, eventId, ts: timestampOf(eventId), type, payload };
}

function evidence(path: string, body: unknown): RequestEvidence {
  const text = JSON.stringify(body);
  return {
    method: 'POST',
    targetUri: `https://chambers.example.org${path}`,
    body: text,
    contentDigest: contentDigestOf(Buffer.from(text)),
    signatureInput: `sig1=("@method" "@target-uri" "content-digest");created=1893499200;keyid="${sample.ALICE}";alg="ed25519";nonce="qL9zR1mV"`,
    signature: `sig1=:${'k'.repeat(86)}==:`,
  };
}

function pathOf(operation: keyof typeof MOVE_PATHS): string {
  return `/chambers/${sample.CHAMBER_ID}/${MOVE_PATHS[operation]}`;
}

function timestampOf(eventId: number): string {
  return `2030-01-01T12:${String(eventId * 3).padStart(2, '0')}:00.000Z`;
}
