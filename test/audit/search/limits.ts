// The limits of what lines show, each with its reason: a forged history may be sound only if a limit covers each of its
// differences. src/audit/README.md explains them.
import { eventKey } from '../../../src/audit/receipts/given-receipts.ts';
import { NO_PREVIOUS } from '../../../src/vocabulary/values.ts';
import type { Json, Line } from '../forge.ts';
import { payloadOf } from '../forgeries.ts';
import { FACTORY, REGISTRY } from '../sample.ts';
import { limitOfChain } from './chain-limits.ts';
import type { Difference } from './differences.ts';
import type { Draft, Entry } from './draft.ts';
import { type History, isMove, OUTSIDER } from './histories.ts';
import { isStub } from './stubs.ts';

/** A stub that is left out may be covered by other limits. */
const STATED_BY_STUB = 'only the service that signed a stub vouches for it: the original line shows the difference';

interface Limit {
  readonly why: string;
  readonly covers: (difference: Difference, draft: Draft) => boolean;
}

export function limitOf(difference: Difference, draft: Draft): string | undefined {
  if (draft.signsStubs && isStub('now' in difference ? difference.now : difference.line)) return STATED_BY_STUB;
  if (isPinned(difference, draft)) return undefined;
  const isCommitted = draft.history.lines.some(({ type }) => type === 'chamber.committed');
  if (draft.history.askChain !== undefined && isCommitted) return limitOfChain(difference);
  return LIMITS.find(({ covers }) => covers(difference, draft))?.why;
}

const LAG_MILLIS = 5_000;
const NAMING = ['chamber.created', 'chamber.joined', 'chamber.proposed'];
/** Members that only the chain shows. */
const OF_CHAIN: Readonly<Record<string, readonly string[]>> = {
  'chamber.committed': ['blockNumber', 'committedAt'],
  'idea.deployed': ['tokenAddress', 'graduatedAt'],
  'idea.deploy_failed': ['reason', 'txHash'],
};
const OF_ACCOUNT = ['payload.walletAddress', 'payload.walletProven', 'payload.label', 'payload.creatorWallet'];
const OF_EARLIER = ['payload.accountEventId', ...OF_ACCOUNT.slice(0, 3)];

const LIMITS: readonly Limit[] = [
  {
    why: 'a root, the service or a later line shows that the end was cut off',
    covers: ({ kind, line, did }, draft) =>
      kind === 'omitted' && areOmitted(draft, did, (all, at) => all.slice(at), line),
  },
  {
    why: 'the first lines of an account may be missing',
    covers: ({ kind, line, did }, draft) =>
      kind === 'omitted' &&
      did !== undefined &&
      !isClaimUnproven(draft, did, line) &&
      areOmitted(draft, did, (all, at) => all.slice(0, at + 1), line),
  },
  {
    why: 'a service can rewrite its log without a move: a receipt, a seen event or the root on the chain shows it',
    covers: ({ kind, line, did }, draft) =>
      kind === 'omitted' &&
      did === undefined &&
      isMove(line) &&
      line['type'] !== 'chamber.created' &&
      !isReceipted(draft) &&
      (draft.isRecommitted || !draft.lines.some((entry) => entry.line['type'] === 'chamber.committed')),
  },
  {
    why: 'moves name account lines by number: a service can rewrite the account and replace an omitted line',
    covers: ({ kind, line, did }, draft) =>
      kind === 'omitted' && did !== undefined && line['type'] !== 'agent.retired' && !isClaimUnproven(draft, did, line),
  },
  {
    why: 'only the service states the values that the first given line of an account inherits from missing lines',
    covers: (difference, draft) => {
      if (difference.kind !== 'changed' || difference.did === undefined) return false;
      const { did, now, path } = difference;
      const isFirst = accountOf(draft, did)[0]?.line === now && now['type'] === 'agent.personality_changed';
      const { patch } = payloadOf(now);
      const [, member = ''] = /^payload\.personality\.(\w+)/.exec(path) ?? [];
      return isFirst && member !== '' && !(member in (patch as Line));
    },
  },
  {
    why: 'nothing ties a creation to its chamber’s number',
    covers: ({ kind, line }, { lines }) =>
      kind === 'inserted' && line['type'] === 'chamber.created' && lines.length === 1,
  },
  {
    why: 'accounts of agents without a move are not compared',
    covers: ({ did }, { lines }) => did !== undefined && !lines.some(({ line }) => line['did'] === did),
  },
  {
    why: 'only the chain shows transactions and outcomes that are not recorded',
    covers: ({ kind, line }) => kind === 'omitted' && isOfChain(line),
  },
  {
    why: 'only the chain confirms transactions and outcomes that are recorded after the moves',
    covers: (difference, draft) =>
      difference.kind === 'inserted' && isOfChain(difference.line) && isAfterMoves(draft, difference.place),
  },
  {
    why: 'only the chain shows blocks, times, tokens and failures, except impossible ones',
    covers: (difference, draft) =>
      difference.kind === 'changed' &&
      OF_CHAIN[String(difference.line['type'])]?.includes(difference.path.replace('payload.', '')) === true &&
      isOfAnyChain(difference.now, draft),
  },
  {
    why: 'any account can sign the relayer’s calls at any nonce, unless one serves two purposes or a deployment precedes the commitment',
    covers: (difference, draft) =>
      difference.kind === 'changed' &&
      /^payload\.(nonce|txHash|rawTransaction)$/.test(difference.path) &&
      (isOfChain(difference.line) || difference.line['type'] === 'chamber.committed') &&
      hasNoncesInOrder(draft),
  },
  {
    why: 'an operator can add its own agents when it rewrites the log',
    covers: (difference, draft) =>
      difference.kind === 'inserted' &&
      difference.did === undefined &&
      difference.line['did'] === OUTSIDER.did &&
      !isReceipted(draft),
  },
  {
    why: 'a move that names no seen event is valid for any chamber with that number at that address',
    covers: (difference, draft) =>
      difference.kind === 'inserted' &&
      difference.did === undefined &&
      (difference.line['type'] === 'chamber.joined' || isHonestElsewhere(difference.line, draft)) &&
      difference.line['request'] !== null &&
      !String((difference.line['request'] as Line)['body']).includes('seen') &&
      !isReceipted(draft),
  },
  {
    why: 'the other parts of the signature fields are not signed',
    covers: (difference, draft) =>
      difference.kind === 'changed' &&
      /^request\.signature(Input)?$/.test(difference.path) &&
      /proxy=|\( "@method"/.test(String((difference.now['request'] as Line | null)?.['signatureInput'])) &&
      (difference.did !== undefined || !isReceipted(draft)),
  },
  {
    why: 'the lines before the first given one are missing, and with them their number and hash',
    covers: (difference, draft) =>
      difference.kind === 'changed' &&
      difference.did !== undefined &&
      ['eventId', 'prev'].includes(difference.path) &&
      difference.now === accountOf(draft, difference.did)[0]?.line &&
      difference.now['prev'] !== NO_PREVIOUS,
  },
  {
    why: 'the letter case of a retirement by a wallet is not signed',
    covers: (difference) =>
      difference.kind === 'changed' &&
      difference.line['type'] === 'agent.retired' &&
      /^payload\.wallet(Address|Proof\.signature)$/.test(difference.path) &&
      JSON.stringify(payloadOf(difference.now)).toLowerCase() ===
        JSON.stringify(payloadOf(difference.line)).toLowerCase(),
  },
  {
    why: 'a service dates its lines within the ages of signatures: a receipt or a seen event pins the time',
    covers: (difference, draft) =>
      difference.kind === 'changed' &&
      difference.path === 'ts' &&
      (difference.did !== undefined || !isReceipted(draft)),
  },
  {
    why: 'a service that rewrites its log can replace a move or the creation by that of a different agent',
    covers: (difference, draft) =>
      difference.kind === 'changed' &&
      difference.did === undefined &&
      isMove(difference.now) &&
      difference.now['did'] === OUTSIDER.did &&
      /^(did$|request\.)/.test(difference.path) &&
      !isReceipted(draft),
  },
  {
    why: 'only the requests of other moves name the created chamber',
    covers: (difference, { lines }) =>
      difference.kind === 'changed' && difference.path === 'chamberId' && lines.length === 1,
  },
  {
    why: 'a service chooses the order of lines of about the same time, and of outcomes on the chain',
    covers: ({ kind, did }, draft) => kind === 'moved' && (did !== undefined || !isReceipted(draft)),
  },
  {
    why: 'a registration with an e-mail address leaves no request, so nothing confirms it',
    covers: (difference) => {
      const { kind, did } = difference;
      const line = kind === 'changed' ? difference.now : difference.line;
      const isUnasked = line['request'] === null || (line['request'] as Line)['body'] === null;
      const isUnsigned = did !== undefined && line['type'] === 'agent.registered' && isUnasked;
      const isOfRequest = kind === 'changed' && difference.path.startsWith('request');
      const isOfContent = kind === 'changed' && /^payload\.(walletAddress|label|personality)/.test(difference.path);
      return isUnsigned && !('walletProof' in payloadOf(line)) && (kind === 'inserted' || isOfRequest || isOfContent);
    },
  },
  {
    why: 'only the service vouches for what a move records about a missing account or an unsigned registration',
    covers: (difference, draft) => {
      if (difference.kind !== 'changed' || difference.did !== undefined) return false;
      const { path, now } = difference;
      if (!OF_ACCOUNT.includes(path) || payloadOf(now)[path.replace('payload.', '')] === undefined) return false;
      const given = accountOf(draft, String(now['did']));
      if (given.length === 0) return true;
      return (
        payloadOf(now)['walletProven'] !== true &&
        bindingOf(given, payloadOf(now)['accountEventId'])?.['request'] == null
      );
    },
  },
  {
    why: 'a move may name an account line that was replaced at most 5 s before, or one that is not given',
    covers: (difference, draft) => {
      if (difference.kind !== 'changed' || difference.path !== 'payload.accountEventId') return false;
      const { now } = difference;
      const { accountEventId } = payloadOf(now);
      const given = accountOf(draft, String(now['did']));
      if (typeof accountEventId !== 'number') return false;
      const first = Number(given[0]?.line['eventId'] ?? Number.POSITIVE_INFINITY);
      const next = given[accountEventId + 1 - first]?.line;
      const isReplaced = next !== undefined && atOf(now) - atOf(next) > LAG_MILLIS;
      return given.length === 0 || accountEventId < first || !isReplaced;
    },
  },
  {
    why: 'lines of earlier releases lack members about accounts and keys',
    covers: (difference, draft) => {
      if (difference.kind !== 'changed' || difference.did !== undefined) return false;
      const { path, now } = difference;
      if (path.startsWith('payload.serviceKeys')) return !isReceipted(draft);
      const isAbsent = payloadOf(now)[path.replace('payload.', '')] === undefined;
      return OF_EARLIER.includes(path) && isAbsent && isBeforeNaming(draft, now);
    },
  },
  {
    why: 'only the chain shows balances, and signatures that contracts accept',
    covers: (difference, { history }) => {
      const { kind, line, did } = difference;
      if (kind !== 'changed') return false;
      if (did === undefined && history.askChain !== undefined) return false;
      if (did === undefined)
        return /^payload\.token\./.test(difference.path) && isMove(line) && 'token' in payloadOf(difference.now);
      const isOfProof = /^(payload\.walletProof|request)\./.test(difference.path);
      const isRegistration = line['type'] === 'agent.registered' && isOfContract(difference.now);
      return isOfProof && isRegistration && isChainless(history);
    },
  },
  {
    why: 'only the chain shows whether a contract signed a retirement, if a registration proves the wallet as a contract',
    covers: (difference, draft) => {
      const { kind, did, line } = difference;
      if (did === undefined || line['type'] !== 'agent.retired' || !isChainless(draft.history)) return false;
      if (kind === 'changed') {
        const isOfProof = difference.path.startsWith('payload.walletProof.');
        return isOfProof && isByContract(accountOf(draft, did), difference.now);
      }
      return kind === 'inserted' && isByContract(accountOf(draft, did), line);
    },
  },
];

/** Returns whether a given line at or after the difference has a receipt, which pins all lines before it. */
function isPinned({ did, kind, line }: Difference, draft: Draft): boolean {
  const { history } = draft;
  if (did === undefined || history.receipts === undefined) return false;
  const honest = history.accounts?.get(did) ?? [];
  const entries = accountOf(draft, did);
  const receipted = (entry: Entry | undefined) =>
    entry?.origin !== undefined &&
    history.receipts?.events.has(eventKey({ stream: did, eventId: Number(entry.origin['eventId']) })) === true;
  if (kind === 'inserted') {
    const place = entries.findIndex((entry) => entry.line === line);
    return entries.slice(place + 1).some(receipted);
  }
  const from = honest.indexOf(line);
  const given = entries.filter(({ origin }) => origin !== undefined && honest.indexOf(origin) >= from);
  // The first lines of an account may be missing.
  const isFront = kind === 'omitted' && from < honest.indexOf(entries[0]?.origin ?? line);
  return !isFront && given.some(receipted);
}

/** Returns whether a chain could hold the claim: its time, its block and its token are possible. */
function isOfAnyChain(line: Line, { lines }: Draft): boolean {
  const { committedAt, graduatedAt, blockNumber, tokenAddress } = payloadOf(line);
  if (blockNumber === 0) return false;
  // Without the deployment calls, no line names the factory.
  const isFactoryNamed = lines.some(({ line: { type, withheld } }) => type === 'relay.deploy_submitted' && !withheld);
  const contracts = [`0x${'0'.repeat(40)}`, REGISTRY, ...(isFactoryNamed ? [FACTORY] : [])];
  if (contracts.includes(String(tokenAddress))) return false;
  const commitment = lines.find((entry) => entry.line['type'] === 'chamber.committed')?.line;
  const from =
    graduatedAt === undefined ? 0 : Date.parse(String(payloadOf(commitment ?? line)['committedAt'] ?? '1970'));
  const at = Date.parse(String(committedAt ?? graduatedAt ?? line['ts']));
  return at <= atOf(line) + LEAD_MILLIS && at >= from - LEAD_MILLIS;
}

const LEAD_MILLIS = 15_000;
/** The nonce of corrected commitments. */
const RECOMMITTED_NONCE = 7;

function hasNoncesInOrder({ lines, isRecommitted }: Draft): boolean {
  const purposes = new Map<number, string>();
  // A deployment that no outcome names may have been signed without being sent.
  const named = new Set(lines.filter(({ line }) => String(line['type']).startsWith('idea.')).map(txHashOf));
  let commitment = -1;
  for (const entry of lines) {
    const { line } = entry;
    if (!String(line['type']).startsWith('relay.')) continue;
    const isCommit = line['type'] === 'relay.commit_submitted';
    const nonce = isCommit && isRecommitted ? RECOMMITTED_NONCE : Number(payloadOf(line)['nonce']);
    const purpose = isCommit ? 'commitment' : String(payloadOf(line)['ideaId']);
    if ((purposes.get(nonce) ?? purpose) !== purpose) return false;
    purposes.set(nonce, purpose);
    if (isCommit) commitment = nonce;
    else if (nonce < commitment && named.has(txHashOf(entry))) return false;
  }
  return true;
}

function txHashOf({ line }: Entry): Json | undefined {
  return payloadOf(line)['txHash'];
}

/** Returns whether every move but the creation has a receipt, whose line pins all lines before it. */
function isReceipted({ history, lines }: Draft): boolean {
  return history.receipts !== undefined && lines.length > 1;
}

function isChainless({ judgeProof }: History): boolean {
  return judgeProof === undefined;
}

function isOfContract(line: Line): boolean {
  const { walletProof } = payloadOf(line);
  return walletProof !== undefined && 'chainId' in (walletProof as Line);
}

function isByContract(given: readonly Entry[], retirement: Line): boolean {
  const walletOf = (line: Line) => String(payloadOf(line)['walletAddress']).toLowerCase();
  const isProof = ({ line }: Entry) => line['type'] === 'agent.registered' && isOfContract(line);
  return (
    isOfContract(retirement) && given.some((entry) => isProof(entry) && walletOf(entry.line) === walletOf(retirement))
  );
}

/** Returns whether an inserted line is a move of another history, with its agent's signed request. */
function isHonestElsewhere(line: Line, { lines }: Draft): boolean {
  const source = lines.find((entry) => entry.line === line)?.source;
  const textOf = ({ type = null, did = null, payload = null, request = null }: Line) =>
    JSON.stringify([type, did, payload, request]);
  return source !== undefined && isMove(source) && textOf(source) === textOf(line);
}

function isOfChain({ type }: Line): boolean {
  return /^(relay\.|idea\.)/.test(String(type));
}

/** Returns whether all chosen lines around this one are left out. */
function areOmitted(
  draft: Draft,
  did: string | undefined,
  chosen: (all: readonly Line[], at: number) => readonly Line[],
  line: Line,
): boolean {
  const { history, lines } = draft;
  const honest = did === undefined ? history.lines : (history.accounts?.get(did) ?? []);
  const kept = new Set((did === undefined ? lines : accountOf(draft, did)).map(({ origin }) => origin));
  return chosen(honest, honest.indexOf(line)).every((each) => !kept.has(each));
}

function isAfterMoves({ lines }: Draft, place: number): boolean {
  return lines[0]?.line['type'] === 'chamber.created' && lines.slice(place).every(({ line }) => !isMove(line));
}

/** Returns whether the line is the only proof of a proven wallet that a move claims. */
function isClaimUnproven(draft: Draft, did: string, left: Line): boolean {
  const isProof = (line: Line) => line['type'] === 'agent.registered' && 'walletProof' in payloadOf(line);
  const given = accountOf(draft, did);
  const isClaimed = draft.lines.some(({ line }) => line['did'] === did && payloadOf(line)['walletProven'] === true);
  return isProof(left) && isClaimed && given.length > 0 && !given.some(({ line }) => isProof(line));
}

/** Returns the account's given lines; a line belongs to the account that it names. */
function accountOf({ accounts }: Draft, did: string): readonly Entry[] {
  return [...accounts.values()].flat().filter(({ line }) => line['did'] === did);
}

/** Returns the registration in effect at that line; undefined if none is given. */
function bindingOf(given: readonly Entry[], accountEventId: Json | undefined): Line | undefined {
  const first = Number(given[0]?.line['eventId']);
  const past = given.slice(0, Math.max(Number(accountEventId) - first + 1, 0));
  return past.findLast(({ line }) => line['type'] === 'agent.registered')?.line;
}

function atOf({ ts }: Line): number {
  return Date.parse(String(ts));
}

/** Returns whether no earlier move shows that the release recorded account lines in moves of this type. */
function isBeforeNaming({ lines }: Draft, move: Line): boolean {
  const before = lines.slice(
    0,
    lines.findIndex(({ line }) => line === move),
  );
  const isNaming = (line: Line) =>
    payloadOf(line)['accountEventId'] !== undefined || payloadOf(line)['walletProven'] !== undefined;
  const isOfAll = (line: Line) =>
    isNaming(line) && (!NAMING.includes(String(line['type'])) || line['type'] === 'chamber.joined');
  const isOfType = NAMING.includes(String(move['type']));
  return !before.some(({ line }) => (isOfType ? isNaming(line) : isOfAll(line)));
}
