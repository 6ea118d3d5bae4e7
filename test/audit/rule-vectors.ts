// Vectors of rules that the sample logs do not exercise: creations, a full chamber, allocations, and forms of signed requests.
import { commitmentHash } from '../../src/crypto/commitment.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import { PUBLIC_URL } from '../kit/test-service.ts';
import { type Json, type Line, rechained, signedLine, toText } from './forge.ts';
import { AFTER_HONEST, honest, line, moves, payloadOf, request, withLine } from './forgeries.ts';
import { ACCEPTED, inForm, REFUSED, type RequestForm } from './request-forms.ts';
import { ALLOCATIONS, ANN, BOB, CAT } from './sample.ts';

type Row = readonly [title: string, text: string, ...eventIds: number[]];

const rewritten = (lines: readonly Line[]) => toText(rechained(lines));
const BY_DEFAULT = { name: 'A shed', minBackersForGraduation: 1, turnSeconds: null };
const WITH_TURNS = { turnSeconds: 60 };
const iso = (hours: number) => new Date(START + hours * HOUR).toISOString();

/** A creation with these members in its body, and the `stored` ones in its payload. */
function creation(members: Line, stored: Line = {}): Line {
  const body: Line = { name: BY_DEFAULT.name, ...deadlinesFrom(START), ...members };
  const isDeadline = (name: string) => name.endsWith('Deadline');
  const [deadlines, rest] = [true, false].map((which) =>
    Object.fromEntries(Object.entries(body).filter(([name]) => isDeadline(name) === which)),
  ) as [Line, Line];
  const payload = { ...BY_DEFAULT, ...rest, deadlines: { ...deadlines, ...stored } };
  return signedLine({ by: ANN, type: 'chamber.created', path: '/chambers', at: START, body, payload });
}

const join = (by: typeof ANN, turnOrder: number): Line => {
  const { walletAddress = null } = payloadOf(moves[1 + [ANN, BOB, CAT].indexOf(by)] as Line);
  const payload = { turnOrder, walletAddress, walletProven: false };
  return signedLine({ by, type: 'chamber.joined', path: 'join', at: START + turnOrder, payload });
};
const created = (title: string, members: Line, stored?: Line): Row => [
  title,
  rewritten([creation(members, stored), join(ANN, 0)]),
];
const wrong = (title: string, members: Line): Row => [...created(title, members), 1];

export function joinedIn(createdAt: number, at: number): string {
  const later = Date.UTC(9998, 6, 1);
  const { minBackersForGraduation, turnSeconds, name } = BY_DEFAULT;
  const deadlines = deadlinesFrom(later);
  const body = { name, minBackersForGraduation, ...deadlines } as unknown as Line;
  const payload = { name, minBackersForGraduation, turnSeconds, deadlines } as unknown as Line;
  const { walletAddress = null } = payloadOf(moves[1] as Line);
  return rewritten([
    signedLine({ by: ANN, type: 'chamber.created', path: '/chambers', at: createdAt, body: body as Json, payload }),
    signedLine({
      ...{ by: ANN, type: 'chamber.joined', path: 'join', at },
      payload: { turnOrder: 0, walletAddress, walletProven: false },
    }),
  ]);
}

const joined = (maxMembers: number) =>
  rewritten([creation({ maxMembers }), ...[ANN, BOB, CAT].map((member, index) => join(member, index))]);

/** The moves, in which CAT commits to these allocations and reveals them. */
function revealing(allocations: Line[], salt = ALLOCATIONS.cat.reveal.salt as string): string {
  const terms = { chamberId: 1, did: CAT.did, allocations, salt } as unknown as Parameters<typeof commitmentHash>[0];
  const commitment = { commitment: commitmentHash(terms) };
  const reveal = { allocations, salt };
  const [COMMITTED, LAST] = [14, moves.length];
  const at = Date.parse(String(moves[COMMITTED - 1]?.['ts']));
  const content = (body: Line) => ({ by: CAT, body: body as Json, payload: body });
  return rewritten([
    ...moves.slice(0, COMMITTED - 1),
    signedLine({ type: 'allocation.committed', path: 'allocate/commit', at, ...content(commitment) }),
    ...moves.slice(COMMITTED, LAST),
    signedLine({
      ...{ type: 'allocation.revealed', path: 'allocate/reveal', at: START + 4.5 * HOUR },
      ...content(reveal),
    }),
  ]);
}
const share = (ideaId: string, bps: number): Line => ({ ideaId, bps });

/** The moves with one more comment, whose request has that form. */
function formed(form: RequestForm): string {
  const { path = '/chambers/1/debate', body = String(request['body']) } = form;
  const { comment = '', refinement = null } = JSON.parse(body) as Line;
  const signed = inForm(form, CAT, { url: PUBLIC_URL + path, body, created: honest.at / 1000 });
  return withLine(AFTER_HONEST, {
    ...line,
    payload: { ...payloadOf(line), comment, refinement },
    request: { ...request, targetUri: PUBLIC_URL + path, ...signed },
  });
}

/** The moves with one more comment, whose refinement nests that many arrays. */
const around = (arrays: number) =>
  formed({ body: `{"comment":"x","refinement":{"a":${'['.repeat(arrays)}${']'.repeat(arrays)}}}` });

const INNER: Readonly<Record<string, Line>> = {
  'only rounds of proposals': { rounds: { proposal: 1 }, ...WITH_TURNS },
  'no round of debate': { rounds: { proposal: 1, debate: 0 }, ...WITH_TURNS },
  '101 rounds': { rounds: { proposal: 101, debate: 1 }, ...WITH_TURNS },
  'a list that names an agent twice': { admission: { dids: [BOB.did, BOB.did] } },
};

const TOKEN = `0x${'11'.repeat(20)}`;

/** A creation with a token rule and the token that the service stores. */
function ofToken(minBalance: Json, token: Line): string {
  const sent = creation({ admission: { token: { address: TOKEN, minBalance } } });
  const stored = { address: TOKEN, minBalance: String(minBalance), at: 'join' };
  return rewritten([{ ...sent, payload: { ...payloadOf(sent), admission: { token: stored }, token } }]);
}

/** The moves with CAT's reveal, without her commitment. */
function uncommitted(): string {
  const reveal = ALLOCATIONS.cat.reveal as unknown as Line;
  return rewritten([
    ...moves.filter(({ did, type }) => did !== CAT.did || type !== 'allocation.committed'),
    signedLine({
      ...{ by: CAT, type: 'allocation.revealed', path: 'allocate/reveal', at: START + 4.5 * HOUR },
      ...{ body: reveal as Json, payload: reveal },
    }),
  ]);
}

const BLOCK = { blockNumber: 41, blockHash: `0x${'c3'.repeat(32)}` };
const CHAIN = { chainId: 31_337 };

export const SOUND: readonly Row[] = [
  created('a creation with only the required members', {}),
  created('a creation whose equal deadlines skip the debate', deadlinesFrom(START, [1, 2, 2, 3, 4])),
  created(
    'a deadline with an offset and excess fraction digits',
    { allocateRevealDeadline: '2030-01-01T06:00:00.0009999+01:00' },
    { allocateRevealDeadline: iso(5) },
  ),
  created('an admission without a rule', { admission: {} }),
  ['a full chamber', joined(3)],
  ['a reveal of 10,000 bps, one idea at 0', revealing([share('idea-3', 10_000), share('idea-1', 0)])],
  ['a reveal without allocations', revealing([])],
  ['a refinement of 16 levels, 15 of which are arrays', around(15)],
  ...ACCEPTED.map(([title, form]): Row => [`a request: ${title}`, formed(form)]),
  ['a token rule checked at the join', ofToken(1, CHAIN)],
];

export const BROKEN: readonly Row[] = [
  wrong('a creation whose lobby ends immediately', { lobbyDeadline: iso(0) }),
  wrong('a deadline before its predecessor', deadlinesFrom(START, [1, 3, 2, 4, 5])),
  wrong('rounds without turnSeconds', { rounds: { proposal: 1, debate: 1 } }),
  ...Object.entries(INNER).map(([title, members]) => wrong(title, members)),
  wrong('a turnSeconds of 0', { turnSeconds: 0 }),
  wrong('a chamber of one member', { maxMembers: 1 }),
  wrong('a chamber of 257 members', { maxMembers: 257 }),
  wrong('graduation without a backer', { minBackersForGraduation: 0 }),
  wrong('a name of 121 characters', { name: 'n'.repeat(121) }),
  wrong('an unknown member in a body', { nam: 'A shed' }),
  wrong('null for turnSeconds in a body', { turnSeconds: null }),
  ['a second creation of a chamber', rewritten([creation({}), creation({ name: 'Another shed' })]), 2],
  ['a join when the chamber is full', joined(2), 4],
  ['a reveal of 10,001 bps', revealing([share('idea-3', 10_000), share('idea-1', 1)]), 17],
  ['a reveal that names an idea twice', revealing([share('idea-3', 1), share('idea-3', 1)]), 17],
  ['a reveal of an idea that does not exist', revealing([share('idea-4', 1)]), 17],
  ['a salt of 15 bytes', revealing([share('idea-3', 1)], `0x${'5a'.repeat(15)}`), 17],
  ['a refinement of 17 levels, 16 of which are arrays', around(16), AFTER_HONEST],
  ...REFUSED.map(([title, form]): Row => [`a request: ${title}`, formed(form), AFTER_HONEST]),
  ['a minBalance of 0', ofToken(0, CHAIN), 1],
  ['a block for a token rule checked at the join', ofToken(1, { ...CHAIN, ...BLOCK }), 1],
  ['a reveal by a member who did not commit', uncommitted(), 16],
];
