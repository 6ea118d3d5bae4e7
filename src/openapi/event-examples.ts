// One line of each type of event, as a stream sends it (parsed). Their hashes are made up; their shapes are checked.
import { contentDigestOf } from '../crypto/content-digest.ts';
import type { Move } from '../moves/move.ts';
import { moves } from '../moves/registry.ts';
import * as sample from '../moves/samples.ts';
import type { ChamberEvent, MoveEvent, RequestEvidence, ServiceEvent } from '../vocabulary/events.ts';
import { NO_PREVIOUS } from '../vocabulary/values.ts';

type Examples = { readonly [Type in ChamberEvent['type']]: Extract<ChamberEvent, { readonly type: Type }> };
type PayloadOf<Type extends ChamberEvent['type']> = Extract<ChamberEvent, { readonly type: Type }>['payload'];

const signed = Object.fromEntries(
  Object.values(moves).map(({ event, path, example }: Move, index) => {
    const request = evidence(path.replace(':id', String(sample.CHAMBER_ID)), example.body);
    const common = { chamberId: sample.CHAMBER_ID, did: sample.ALICE, eventId: index + 1, ts: timestampOf(index + 1) };
    const prev = index === 0 ? NO_PREVIOUS : sample.PREV;
    return [event, { ...common, prev, request, type: event, payload: example.payload }];
  }),
  // Each slice's event and payload belong together.
) as unknown as Pick<Examples, MoveEvent['type']>;

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

export const eventExamples: Examples = { ...signed, ...services };

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

function timestampOf(eventId: number): string {
  return `2030-01-01T12:${String(eventId * 3).padStart(2, '0')}:00.000Z`;
}
