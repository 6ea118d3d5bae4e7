// Vectors of a chamber whose ideas change, derived from its sample log, and of chambers that require a minimum number of members.
import { readFileSync } from 'node:fs';
import { allocationOf, deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { type ForgedMove, type Line, parse, rechained, signedLine, toText } from './forge.ts';
import { payloadOf, revealOf } from './forgeries.ts';
import {
  ANN,
  BOB,
  CHAMBER_ID,
  deployment,
  FACTORY,
  openService,
  record,
  recordCommitted,
  signed,
  signedCommit,
} from './sample.ts';
import { AMENDED } from './sample-with-amendments.ts';

type Row = readonly [title: string, text: string, ...eventIds: number[]];

const text = readFileSync(new URL('../../fixtures/logs/chamber-with-amendments.ndjson', import.meta.url), 'utf8');
const records = parse(text.trimEnd().split('\n'));
const MOVES = 20;
const moves = records.slice(0, MOVES);

const [JOIN_OF_BOB, WITHDRAWAL, BOBS_PASS, STANCE, AMENDMENT, ANNS_PASS] = [3, 6, 9, 10, 11, 12];
const LAST_COMMITMENT = 18;
const DEPLOY = 23;

const rewritten = (lines: readonly Line[]) => toText(rechained(lines));
const atOf = (eventId: number) => Date.parse(String(records[eventId - 1]?.['ts']));
/** The moves up to an event, then the forged ones a second apart; those after PROPOSAL's last move are in DEBATE. */
const then = (eventId: number, ...forged: readonly ((at: number) => ForgedMove)[]) => {
  const after = eventId === BOBS_PASS ? START + 2 * HOUR : atOf(eventId);
  return rewritten([
    ...moves.slice(0, eventId),
    ...forged.map((move, index) => signedLine(move(after + (index + 1) * 1_000))),
  ]);
};

interface Texts {
  readonly name?: string;
  readonly description?: string;
}

const amend = (by: Signer, ideaId: string, version: number, texts: Texts) => (at: number) => ({
  ...{ by, at, type: 'chamber.amended', path: 'amend', body: { ideaId, ...texts } },
  payload: { ideaId, version, ...texts },
});
const withdraw = (by: Signer, ideaId: string) => (at: number) => ({
  ...{ by, at, type: 'chamber.withdrawn', path: 'withdraw', body: { ideaId }, payload: { ideaId } },
});
const debate =
  (by: Signer, said: Line, recorded: Line = {}) =>
  (at: number) => ({
    ...{ by, at, type: 'chamber.debated', path: 'debate', body: { comment: 'Well.', ...said } },
    payload: { comment: 'Well.', ideaId: null, refinement: null, ...said, ...recorded },
  });
const pass =
  (by: Signer, { did }: Signer) =>
  (at: number) => ({
    ...{ by, at, type: 'chamber.passed', path: 'pass', payload: { nextTurnAgent: did } },
  });
const commit = (by: Signer, allocation: ReturnType<typeof allocationOf>) => (at: number) => ({
  ...{ by, at, type: 'allocation.committed', path: 'allocate/commit', body: allocation.commit },
  payload: allocation.commit,
});

const better = { name: 'Better' };

/** Returns the first idea's versions up to the 16th, in turns of four moves. */
function versions(count: number): readonly ((at: number) => ForgedMove)[] {
  return Array.from({ length: count }, (_, index) => {
    const version = index + 3;
    const move = amend(ANN, 'idea-1', version, { name: `Version ${version}` });
    return index > 0 && index % 4 === 0 ? [pass(ANN, BOB), pass(BOB, ANN), move] : [move];
  }).flat();
}

/** A chamber in which ANN is the only member at the end of LOBBY, and whose root is then on the chain. */
async function withTooFewMembers(millisAfterLobby = 1_000): Promise<string> {
  const service = await openService([ANN, BOB]);
  const send = async (path: string, body: object) => {
    service.clock.advance(1_000);
    const parts = { method: 'POST', url: `https://forum.test${path}`, body: JSON.stringify(body) };
    const headers = ANN.sign({ ...parts, created: service.clock.seconds, nonce: `alone${path.replaceAll('/', '-')}` });
    const type = { 'content-type': 'application/json' };
    await service.send({ ...parts, path, headers: { ...headers, ...type } });
  };
  await send('/chambers', { name: 'A garden alone', ...deadlinesFrom(START), minMembers: 2 });
  await send('/chambers/1/join', {});
  service.clock.set(START + HOUR);
  const sent = await signedCommit(service, { nonce: 7, fee: 100n });
  await record(service, { type: 'relay.commit_submitted', payload: sent });
  await recordCommitted(service, { txHash: sent.txHash, committedAt: '2030-01-01T01:00:02.000Z' });
  const [created, joined, submitted, ...rest] = parse(await service.lines(CHAMBER_ID)) as [Line, Line, Line];
  const ts = new Date(START + HOUR + millisAfterLobby).toISOString();
  return rewritten([created, joined, { ...submitted, ts }, ...rest]);
}

export async function sound(): Promise<readonly Row[]> {
  return [
    ['with amendments: the whole log', text],
    ['with amendments: the moves alone', rewritten(moves)],
    ['a chamber with too few members, and its root', await withTooFewMembers()],
    ['a 16th version', then(ANNS_PASS, pass(BOB, ANN), ...versions(14))],
    ['a comment on a withdrawn idea', then(BOBS_PASS, debate(ANN, { ideaId: 'idea-2' }))],
    [
      'a reply to a proposal, and a reply to that reply',
      then(BOBS_PASS + 1, debate(ANN, { replyTo: 4 }), debate(ANN, { replyTo: 11 })),
    ],
    [
      'a stance on a version, and another on the next',
      then(
        BOBS_PASS,
        debate(ANN, { ideaId: 'idea-1', stance: 'for' }, { version: 1 }),
        amend(ANN, 'idea-1', 2, better),
        debate(ANN, { ideaId: 'idea-1', stance: 'for' }, { version: 2 }),
      ),
    ],
    [
      'an amendment that changes one text and repeats the other',
      then(BOBS_PASS, amend(ANN, 'idea-1', 2, { name: 'Compost for all', description: '' })),
    ],
  ];
}

const NAMES_WITHDRAWN = allocationOf(CHAMBER_ID, BOB, { 'idea-1': 5_000, 'idea-2': 0 });

function namesWithdrawn(): string {
  const revealed = signedLine({
    ...{ by: BOB, at: atOf(LAST_COMMITMENT + 1), type: 'allocation.revealed', path: 'allocate/reveal' },
    ...revealOf(NAMES_WITHDRAWN),
  });
  const committed = signedLine(commit(BOB, NAMES_WITHDRAWN)(atOf(LAST_COMMITMENT)));
  return rewritten([...moves.slice(0, LAST_COMMITMENT - 1), committed, revealed]);
}

function withCreation(members: Line): Line {
  const [created] = records as [Line];
  return { ...created, payload: { ...payloadOf(created), ...members } };
}

export const BROKEN: readonly Row[] = [
  ['an amendment by an agent other than the proposer', then(ANNS_PASS, amend(BOB, 'idea-1', 3, better)), ANNS_PASS + 1],
  ['an amendment out of turn', then(ANNS_PASS, amend(ANN, 'idea-1', 3, better)), ANNS_PASS + 1],
  ['an amendment in PROPOSAL', then(4, amend(ANN, 'idea-1', 2, better)), 5],
  ['an amendment in ALLOCATE_COMMIT', then(LAST_COMMITMENT, amend(ANN, 'idea-1', 3, better)), LAST_COMMITMENT + 1],
  ['a version skipped', then(BOBS_PASS, amend(ANN, 'idea-1', 3, better)), BOBS_PASS + 1],
  ['a duplicate version', then(AMENDMENT, amend(ANN, 'idea-1', 2, better)), AMENDMENT + 1],
  ['an amendment omitted', rewritten(moves.toSpliced(AMENDMENT - 1, 1)), AMENDMENT, 12, 13],
  [
    'an amendment that changes nothing',
    then(BOBS_PASS, amend(ANN, 'idea-1', 2, { name: 'Compost for all' })),
    BOBS_PASS + 1,
  ],
  ['an amendment of a withdrawn idea', then(BOBS_PASS, amend(ANN, 'idea-2', 2, better)), BOBS_PASS + 1],
  ['an amendment of an idea that does not exist', then(BOBS_PASS, amend(ANN, 'idea-4', 2, better)), BOBS_PASS + 1],
  [
    'a 17th version',
    then(ANNS_PASS, pass(BOB, ANN), ...versions(14), pass(ANN, BOB), pass(BOB, ANN), amend(ANN, 'idea-1', 17, better)),
    36,
  ],
  ['a fifth move, an amendment, in a turn of four', then(BOBS_PASS, ...versionsOfTurn()), BOBS_PASS + 5],
  ['a text other than the requested one', rewritten(moves.with(AMENDMENT - 1, amendedOtherwise())), AMENDMENT],
  ['a withdrawal by an agent other than the proposer', then(ANNS_PASS, withdraw(BOB, 'idea-1')), ANNS_PASS + 1],
  ['a second withdrawal of an idea', then(WITHDRAWAL, withdraw(ANN, 'idea-2')), WITHDRAWAL + 1],
  ['a withdrawal in ALLOCATE_COMMIT', then(LAST_COMMITMENT, withdraw(ANN, 'idea-1')), LAST_COMMITMENT + 1],
  ['a reveal that names a withdrawn idea', namesWithdrawn(), LAST_COMMITMENT + 1],
  [
    'a stance on a withdrawn idea',
    then(BOBS_PASS, debate(ANN, { ideaId: 'idea-2', stance: 'for' }, { version: 1 })),
    STANCE,
  ],
  ['a stance that names no idea', then(BOBS_PASS, debate(ANN, { stance: 'for' }, { version: 1 })), STANCE],
  [
    'a stance on an outdated version',
    then(AMENDMENT, debate(ANN, { ideaId: 'idea-1', stance: 'for' }, { version: 1 })),
    AMENDMENT + 1,
  ],
  ['a stance without its version', then(BOBS_PASS, debate(ANN, { ideaId: 'idea-1', stance: 'for' })), STANCE],
  ['a stance other than the requested one', rewritten(moves.with(STANCE - 1, otherStance())), STANCE],
  ['a reply to a pass', then(BOBS_PASS, debate(ANN, { replyTo: BOBS_PASS })), STANCE],
  ['a reply to a withdrawal', then(BOBS_PASS, debate(ANN, { replyTo: WITHDRAWAL })), STANCE],
  ['a reply to itself', then(BOBS_PASS, debate(ANN, { replyTo: STANCE })), STANCE],
  ['a reply to a later event', then(BOBS_PASS, debate(ANN, { replyTo: STANCE + 1 }), debate(ANN, {})), STANCE],
  [
    'a chamber that continues with too few members',
    rewritten([...moves.slice(0, JOIN_OF_BOB - 1), moves[JOIN_OF_BOB] as Line]),
    JOIN_OF_BOB,
  ],
  ['a minMembers that the creator did not request', rewritten([withCreation({ minMembers: 1 }), ...moves.slice(1)]), 1],
  ['the requested minMembers omitted', rewritten([withoutMinMembers(), ...moves.slice(1)]), 1],
];

/** Five moves in the first turn of the debate. */
function versionsOfTurn(): readonly ((at: number) => ForgedMove)[] {
  return [2, 3, 4, 5, 6].map((version) => amend(ANN, 'idea-1', version, { name: `Version ${version}` }));
}

function amendedOtherwise(): Line {
  const record = records[AMENDMENT - 1] as Line;
  return { ...record, payload: { ...payloadOf(record), description: 'One bin a street.' } };
}

function otherStance(): Line {
  const record = records[STANCE - 1] as Line;
  return { ...record, payload: { ...payloadOf(record), stance: 'for' } };
}

function withoutMinMembers(): Line {
  const [created] = records as [Line];
  const { minMembers: _, ...payload } = payloadOf(created);
  return { ...created, payload };
}

export async function wrongDeployments(): Promise<readonly Row[]> {
  const old = { ...AMENDED, description: 'Bins.' };
  const { txHash, rawTransaction } = await signed(FACTORY, deployment(old), { nonce: 8, fee: 100n });
  const [sent, deployed] = records.slice(DEPLOY - 1) as [Line, Line];
  const lines = [
    ...records.slice(0, DEPLOY - 1),
    { ...sent, payload: { ...payloadOf(sent), txHash, rawTransaction } },
    { ...deployed, payload: { ...payloadOf(deployed), txHash } },
  ];
  const early = await withTooFewMembers(-1);
  return [
    ['a token with the text from before the amendment', rewritten(lines), DEPLOY],
    ['the root of a chamber with too few members before LOBBY ends', early, 3],
  ];
}
