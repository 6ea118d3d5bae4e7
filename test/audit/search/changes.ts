// The changes that forgers make to a history: they insert, drop and move lines, replace, remove and copy claims, and sign
// requests again.
import { type Hex, parseTransaction } from 'viem';
import type { privateKeyToAccount } from 'viem/accounts';
import { leafHash } from '../../../src/crypto/merkle.ts';
import { retirementText, walletProofText } from '../../../src/crypto/wallet-texts.ts';
import { canonicalJson } from '../../../src/vocabulary/json.ts';
import { NO_PREVIOUS, toHex } from '../../../src/vocabulary/values.ts';
import type { Random } from '../../kit/random.ts';
import type { Signer } from '../../kit/signer.ts';
import { changed, leaves, type Path, similarValue } from '../alter.ts';
import type { Json, Line } from '../forge.ts';
import { payloadOf, requestOf } from '../forgeries.ts';
import { FACTORY, REGISTRY, signed } from '../sample.ts';
import type { Draft, Entry } from './draft.ts';
import { type History, OUTSIDER, SIGNERS, WALLETS } from './histories.ts';
import { editedStub, isStub, stubOver } from './stubs.ts';

/** Changes the draft; returns false if the change is not applicable. */
export type Change = (draft: Draft, random: Random) => boolean | Promise<boolean>;

const HOUR = 3_600_000;
const JUNK = '0xdead';
const BLOCK = { chainId: 31_337, blockNumber: 41, blockHash: `0x${'c3'.repeat(32)}` };

/** The stream to change: an account in two of five cases, if there is one. */
class Stream {
  readonly name: string;
  readonly #draft: Draft;
  readonly #did: string | undefined;

  constructor(draft: Draft, random: Random) {
    this.#draft = draft;
    this.#did = draft.accounts.size > 0 && random.chance(0.4) ? random.pick([...draft.accounts.keys()]) : undefined;
    this.name = this.#did === undefined ? 'the chamber' : `the account of ${this.#did.slice(-4)}`;
  }

  get entries(): readonly Entry[] {
    return this.#did === undefined ? this.#draft.lines : (this.#draft.accounts.get(this.#did) ?? []);
  }

  set entries(entries: Entry[]) {
    if (this.#did === undefined) this.#draft.lines = entries;
    else this.#draft.accounts.set(this.#did, entries);
  }

  describe(what: string): true {
    this.#draft.descriptions.push(`${what} of ${this.name}`);
    return true;
  }
}

const typeOf = ({ line }: Entry) => String(line['type']);

/** Returns the changes, each as often as its weight. */
export function changesOf(histories: readonly History[]): readonly Change[] {
  const pool = histories.flatMap(({ lines, accounts }) => [
    ...lines,
    ...[...(accounts ?? [])].flatMap(([, all]) => all),
  ]);
  const types = [...Map.groupBy(pool, ({ type }) => String(type)).values()];
  const values = valuesByPath(pool);
  const insertLine: Change = (draft, random) => insert(draft, random, random.pick(random.pick(types)));
  const replace: Change = (draft, random) => replaceValue(draft, random, values);
  const copy: Change = (draft, random) => copyMember(draft, random, pool);
  const structural = [insertLine, insertLine, dropLine, cut, cut, exchange, repeat, date];
  const claimChanges = [
    replace,
    replace,
    replace,
    flip,
    flip,
    removeMember,
    removeMember,
    copy,
    unprove,
    unprove,
    unprove,
  ];
  const signatureChanges = [
    signByAnother,
    removeRequest,
    claimContract,
    proveAgain,
    proveAgain,
    changeBody,
    changeUnsigned,
  ];
  const serviceChanges = [chainClaim, chainClaim, balance, nonceOf, oneTransaction];
  const stubChanges = [withholdAny, withholdAny, editStub, editStub, moveStub, restate];
  return [
    ...structural,
    ...stubChanges,
    ...claimChanges,
    ...signatureChanges,
    ...serviceChanges,
    uppercase,
    clearFirstPrev,
    join,
  ];
}

/** Replaces a line of any type, even a vote, with a stub that the service signs. */
const withholdAny: Change = (draft, random) => {
  const stream = new Stream(draft, random);
  const place = random.below(stream.entries.length);
  const { line } = stream.entries[place] ?? {};
  if (line === undefined || isStub(line)) return false;
  const leaf = toHex(leafHash(Buffer.from(canonicalJson(line))));
  stream.entries = stream.entries.with(place, { ...(stream.entries[place] as Entry), line: stubOver(line, leaf) });
  return stream.describe(`${String(line['type'])} at ${place} withheld`);
};

function changeStub(draft: Draft, random: Random, change: (line: Line, others: readonly Line[]) => Line): boolean {
  const stream = new Stream(draft, random);
  const stubs = stream.entries.map(({ line }, index) => ({ line, index })).filter(({ line }) => isStub(line));
  if (stubs.length === 0) return false;
  const { line, index } = random.pick(stubs);
  const changed = change(
    line,
    stubs.map((each) => each.line),
  );
  stream.entries = stream.entries.with(index, { ...(stream.entries[index] as Entry), line: changed });
  return stream.describe(`the stub at ${index} changed`);
}

const editStub: Change = (draft, random) => changeStub(draft, random, (line) => editedStub(line, random));

/** Copies another stub's statement, or only its signature, into a stub. */
const moveStub: Change = (draft, random) =>
  changeStub(draft, random, (line, others) => {
    const [own, other] = [line['withheld'] as Line, random.pick(others)['withheld'] as Line];
    return { ...line, withheld: random.chance(0.5) ? other : { ...own, signature: other['signature'] as Json } };
  });

/** Changes what a stub states about its event. */
const restate: Change = (draft, random) =>
  changeStub(draft, random, (line) => {
    const paths = leaves(line).filter(([first]) => first === 'payload' || first === 'did' || first === 'ts');
    const path = random.pick(paths);
    return changed(line, path, similarValue) as Line;
  });

/** Inserts a line of any history, with the time of the line before it. */
function insert(draft: Draft, random: Random, line: Line): boolean {
  const stream = new Stream(draft, random);
  const { entries } = stream;
  const place = random.chance(0.2) ? random.pick([0, entries.length]) : random.below(entries.length + 1);
  const neighbour = entries[Math.max(place - 1, 0)]?.line ?? line;
  const { chamberId = null, ts = null } = neighbour;
  const put = { ...line, chamberId, ts: random.chance(0.8) ? ts : (line['ts'] ?? null) };
  stream.entries = entries.toSpliced(place, 0, { line: put, origin: undefined, source: line });
  return stream.describe(`${String(line['type'])} inserted at ${place}`);
}

const dropLine: Change = (draft, random) => {
  const stream = new Stream(draft, random);
  if (stream.entries.length === 0) return false;
  const place = random.below(stream.entries.length);
  stream.entries = stream.entries.toSpliced(place, 1);
  return stream.describe(`line ${place} dropped`);
};

/** Drops the beginning or the end; account lines keep their numbers. */
const cut: Change = (draft, random) => {
  const stream = new Stream(draft, random);
  const { length } = stream.entries;
  if (length < 2) return false;
  const count = 1 + random.below(length - 1);
  const isFront = random.chance(0.5);
  stream.entries = isFront ? stream.entries.slice(count) : stream.entries.slice(0, -count);
  return stream.describe(`${isFront ? 'the first' : 'the last'} ${count} lines dropped`);
};

/** Swaps two lines and their times. */
const exchange: Change = (draft, random) => {
  const stream = new Stream(draft, random);
  const { entries } = stream;
  if (entries.length < 2) return false;
  const first = random.below(entries.length - 1);
  const second = random.chance(0.7) ? first + 1 : random.below(entries.length);
  const [one, other] = [entries[first], entries[second]] as [Entry, Entry];
  const dated = (entry: Entry, { line }: Entry) => ({ ...entry, line: { ...entry.line, ts: line['ts'] ?? null } });
  stream.entries = entries.with(first, dated(other, one)).with(second, dated(one, other)) as Entry[];
  return stream.describe(`lines ${first} and ${second} swapped`);
};

const repeat: Change = (draft, random) => {
  const stream = new Stream(draft, random);
  if (stream.entries.length === 0) return false;
  const again = random.pick(stream.entries);
  const place = random.below(stream.entries.length + 1);
  const { ts = null } = stream.entries[Math.max(place - 1, 0)]?.line ?? {};
  stream.entries = stream.entries.toSpliced(place, 0, { ...again, line: { ...again.line, ts } });
  return stream.describe(`${typeOf(again)} repeated at ${place}`);
};

/** Changes the time of one line, or of all lines from it on. */
const date: Change = (draft, random) => {
  const stream = new Stream(draft, random);
  const place = random.below(stream.entries.length + 1);
  const millis = random.pick([1, 1_000, 60_000, 301_000, HOUR, 20 * HOUR, -1, -1_000, -60_000, -HOUR]);
  const isAll = random.chance(0.5);
  stream.entries = stream.entries.map((entry, index) => {
    if (index < place || (index > place && !isAll)) return entry;
    const at = Date.parse(String(entry.line['ts']));
    if (Number.isNaN(at)) return entry;
    const ts = new Date(at + millis).toISOString();
    return { ...entry, line: { ...entry.line, ts } };
  });
  return stream.describe(`line ${place} ${isAll ? 'and all after it ' : ''}dated ${millis} ms later`);
};

type Values = ReadonlyMap<string, readonly Json[]>;

function valuesByPath(pool: readonly Line[]): Values {
  const found = new Map<string, Set<string>>();
  for (const line of pool) {
    for (const path of leaves(line)) {
      const values = found.get(path.at(-1) ?? '') ?? new Set();
      found.set(path.at(-1) ?? '', values.add(JSON.stringify(valueAt(line, path))));
    }
  }
  return new Map([...found].map(([name, values]) => [name, [...values].map((text) => JSON.parse(text) as Json)]));
}

function valueAt(value: Json, [name, ...rest]: Path): Json {
  if (name === undefined) return value;
  return valueAt((value as Line)[name] as Json, rest);
}

/** Replaces a value with that of another line, or with a similar one. */
function replaceValue(draft: Draft, random: Random, values: Values): boolean {
  return alterOne(draft, random, (line) => {
    const path = random.pick(leaves(line));
    const others = values.get(path.at(-1) ?? '') ?? [];
    const replaced = (value: Json): Json => {
      if (random.chance(0.6) && others.length > 0) return random.pick(others);
      return random.pick([similarValue(value), null, 0, '', true, [], {}]);
    };
    return [changed(line, path, replaced) as Line, `${path.join('.')} replaced`];
  });
}

/** Inverts a boolean, or changes a number by 1. Booleans are chosen often because they are rare and most of them matter. */
const flip: Change = (draft, random) => {
  const kind = random.pick(['boolean', 'number']);
  const claimsIn = (line: Line) => leaves(line).filter((path) => typeof valueAt(line, path) === kind);
  const alter = (line: Line) => {
    const path = random.pick(claimsIn(line));
    const by = random.pick([1, -1]);
    const opposite = (value: Json) => (typeof value === 'boolean' ? !value : Number(value) + by);
    return [changed(line, path, opposite) as Line, `${path.join('.')} flipped`] as const;
  };
  return alterOne(draft, random, alter, (line) => claimsIn(line).length > 0);
};

/** Removes a member of the payload or of an object in it. */
const removeMember: Change = (draft, random) =>
  alterOne(draft, random, (line) => {
    const payload = payloadOf(line);
    const inner = Object.entries(payload).filter(([, value]) => typeof value === 'object' && value !== null);
    const [name, object] = random.chance(0.3) && inner.length > 0 ? random.pick(inner) : [undefined, payload];
    const members = Object.keys(object as Line);
    if (members.length === 0) return undefined;
    const { [random.pick(members)]: _, ...rest } = object as Line;
    return [{ ...line, payload: name === undefined ? rest : { ...payload, [name]: rest } }, 'a member removed'];
  });

/** Adds a member that another line of the same type has. */
function copyMember(draft: Draft, random: Random, pool: readonly Line[]): boolean {
  return alterOne(draft, random, (line) => {
    const payload = payloadOf(line);
    const others = pool
      .filter(({ type }) => type === line['type'])
      .flatMap((other) => Object.entries(payloadOf(other)));
    const missing = others.filter(([name]) => !(name in payload));
    if (missing.length === 0) return undefined;
    const [name, value] = random.pick(missing);
    return [{ ...line, payload: { ...payload, [name]: value } }, `${name} added`];
  });
}

/** Drops the lines that prove the claims of a move or an outcome; half of the time, also sets the claims to true. */
const unprove: Change = (draft, random) => {
  const claims = draft.lines.filter((entry) => proofsOf(draft, entry).size > 0);
  if (claims.length === 0) return false;
  const claim = random.pick(claims);
  const proofs = proofsOf(draft, claim);
  const others = (entries: readonly Entry[]) => entries.filter((entry) => !proofs.has(entry));
  const payload = payloadOf(claim.line);
  const most = random.chance(0.5)
    ? Object.entries(payload).map(([name, value]) => [name, typeof value === 'boolean' ? true : value] as const)
    : Object.entries(payload);
  const claimed = { ...claim, line: { ...claim.line, payload: Object.fromEntries(most) } };
  draft.lines = others(draft.lines.map((entry) => (entry === claim ? claimed : entry)));
  for (const [did, entries] of draft.accounts) draft.accounts.set(did, others(entries));
  draft.descriptions.push(`${typeOf(claim)} without the ${proofs.size} lines that prove it`);
  return true;
};

const PROVEN_BY: Readonly<Record<string, string>> = {
  'chamber.debated': 'chamber.proposed',
  'chamber.amended': 'chamber.proposed',
  'chamber.withdrawn': 'chamber.proposed',
  'allocation.revealed': 'allocation.committed',
  'chamber.committed': 'relay.commit_submitted',
  'idea.deployed': 'relay.deploy_submitted',
  'idea.deploy_failed': 'relay.deploy_submitted',
};

function proofsOf({ lines, accounts }: Draft, claim: Entry): ReadonlySet<Entry> {
  const { did = null } = claim.line;
  const { ideaId, accountEventId } = payloadOf(claim.line);
  const isProof = (entry: Entry) =>
    typeOf(entry) === PROVEN_BY[typeOf(claim)] &&
    (did === null || ideaId !== undefined || entry.line['did'] === did) &&
    (ideaId === undefined || payloadOf(entry.line)['ideaId'] === ideaId);
  const registrations = (accounts.get(String(did)) ?? []).filter(
    (entry) => typeOf(entry) === 'agent.registered' && Number(entry.line['eventId']) <= Number(accountEventId),
  );
  return new Set([...lines.filter(isProof), ...registrations]);
}

function alterOne(
  draft: Draft,
  random: Random,
  alter: (line: Line) => readonly [Line, string] | undefined,
  isMeant: (line: Line) => boolean = () => true,
): boolean {
  const stream = new Stream(draft, random);
  const meant = stream.entries.filter(({ line }) => isMeant(line));
  if (meant.length === 0) return false;
  const entry = random.pick(meant);
  const place = stream.entries.indexOf(entry);
  const altered = alter(entry.line);
  if (altered === undefined) return false;
  stream.entries = stream.entries.with(place, { ...entry, line: altered[0] });
  return stream.describe(`line ${place} (${typeOf(entry)}): ${altered[1]}`);
}

function alterOfChamber(
  draft: Draft,
  random: Random,
  types: readonly string[],
  alter: (line: Line) => readonly [Line, string],
): boolean {
  const meant = draft.lines.filter(({ line }) => types.includes(String(line['type'])));
  if (meant.length === 0) return false;
  const entry = random.pick(meant);
  const [line, what] = alter(entry.line);
  draft.lines = draft.lines.with(draft.lines.indexOf(entry), { ...entry, line });
  draft.descriptions.push(`${typeOf(entry)}: ${what}`);
  return true;
}

/** Signs an agent's request with a foreign key, under that key's DID or the agent's. */
const signByAnother: Change = (draft, random) =>
  alterOne(draft, random, (line) => {
    if (line['request'] === null) return undefined;
    const isNamed = random.chance(0.3);
    const signed = signedAgain(line, OUTSIDER);
    return [
      isNamed ? { ...signed, did: OUTSIDER.did } : signed,
      `signed with a foreign key${isNamed ? ' under its own name' : ''}`,
    ];
  });

const removeRequest: Change = (draft, random) =>
  alterOne(draft, random, (line) =>
    line['request'] === null ? undefined : [{ ...line, request: null }, 'request removed'],
  );

/** Claims that a contract accepted a wallet proof. */
const claimContract: Change = (draft, random) =>
  alterOne(draft, random, (line) => {
    const { walletProof, ...payload } = payloadOf(line);
    if (walletProof === undefined) return undefined;
    const proof = { ...(walletProof as Line), signature: JUNK, ...BLOCK };
    const claimed = { ...line, payload: { ...payload, walletProof: proof } };
    const signer = SIGNERS.get(String(line['did']));
    const isSigned = line['request'] !== null && signer !== undefined;
    return [
      isSigned ? withBody(claimed, { walletSignature: JUNK }, signer) : claimed,
      'claimed as accepted by a contract',
    ];
  });

/** Signs a wallet proof for another service or time, with the keys of wallet and agent. */
const proveAgain: Change = async (draft, random) => {
  const isProven = ({ line }: Entry) => 'walletProof' in payloadOf(line);
  const [did, entries] = [...draft.accounts].find(([, all]) => all.some(isProven) && random.chance(0.6)) ?? [];
  if (did === undefined || entries === undefined) return false;
  const place = entries.indexOf(random.pick(entries.filter(isProven)));
  const { line } = entries[place] as Entry;
  const proof = payloadOf(line)['walletProof'] as Line;
  const wallet = WALLETS.get(String(payloadOf(line)['walletAddress']).toLowerCase());
  const at = Date.parse(String(line['ts']));
  if (Number.isNaN(at)) return false;
  const isElsewhere = random.chance(0.3);
  const isOtherForm = !isElsewhere && random.chance(0.5);
  const service = isElsewhere ? 'https://other.test' : String(proof['service']);
  const old = new Date(at - 20 * HOUR).toISOString();
  const kept = String(proof['issuedAt']);
  const issuedAt = isElsewhere ? kept : isOtherForm ? random.pick(FORMS_OF_TIME)(kept) : old;
  const signature =
    wallet === undefined ? String(proof['signature']) : await proofOf(wallet, line, { did, service, issuedAt });
  const claimed = { ...line, payload: { ...payloadOf(line), walletProof: { ...proof, signature, service, issuedAt } } };
  const signer = SIGNERS.get(did);
  const isSigned = line['request'] !== null && signer !== undefined;
  const signed = isSigned ? withBody(claimed, { walletSignature: signature, issuedAt }, signer) : claimed;
  draft.accounts.set(did, entries.with(place, { ...(entries[place] as Entry), line: signed }) as Entry[]);
  draft.descriptions.push(
    `${String(line['type'])} of ${did.slice(-4)} with a proof ${isElsewhere ? 'for another service' : `of ${issuedAt}`}`,
  );
  return true;
};

/** Texts that some date parsers read as the same time. */
const FORMS_OF_TIME: readonly ((text: string) => string)[] = [
  (text) => text.replace('T', ' ').replace('.000Z', ' UTC'),
  (text) => text.replace('T', ' ').replace('.000Z', ' ()'),
  (text) => text.replace('.000Z', ''),
  (text) => text.replace('.000Z', '.Z'),
  (text) => text.replace('.000Z', '+0000'),
  (text) => new Date(text).toUTCString(),
];

async function proofOf(
  wallet: ReturnType<typeof privateKeyToAccount>,
  { type }: Line,
  about: Parameters<typeof retirementText>[0],
): Promise<string> {
  const message = type === 'agent.retired' ? retirementText(about) : walletProofText(wallet.address, about);
  return await wallet.signMessage({ message });
}

/** Signs an account's request again with a different body: with an e-mail address or with junk. */
const changeBody: Change = (draft, random) =>
  alterOne(draft, random, (line) => {
    const signer = SIGNERS.get(String(line['did']));
    if (line['request'] === null || signer === undefined || !String(line['type']).startsWith('agent.'))
      return undefined;
    const members: Line = random.pick([{ operatorEmail: 'a@example.org' }, { junk: 1 }]);
    return [withBody(line, members, signer), `body with ${Object.keys(members)[0]}`];
  });

/** Changes unsigned parts: the label, or whitespace. */
const changeUnsigned: Change = (draft, random) =>
  alterOne(draft, random, (line) => {
    if (line['request'] === null) return undefined;
    const { signatureInput, signature, ...request } = requestOf(line);
    const isLabel = random.chance(0.5);
    const input = isLabel
      ? `${String(signatureInput)}, proxy=("@method");created=1;keyid="x"`
      : String(signatureInput).replace('("@method" ', '( "@method"   ');
    const sent = isLabel ? `${String(signature)}, proxy=:AAAA:` : String(signature);
    return [
      { ...line, request: { ...request, signatureInput: input, signature: sent } },
      isLabel ? 'a label' : 'whitespace',
    ];
  });

/** Adds claims about the chain that no chain confirms. */
const chainClaim: Change = (draft, random) => {
  const claims: Readonly<Record<string, readonly (readonly [string, Json])[]>> = {
    'chamber.committed': [
      ['committedAt', random.pick(EXTREME_TIMES)],
      ['blockNumber', 0],
    ],
    'idea.deployed': [
      ['graduatedAt', random.pick(EXTREME_TIMES)],
      ['tokenAddress', random.pick([`0x${'0'.repeat(40)}`, REGISTRY, FACTORY])],
    ],
  };
  return alterOfChamber(draft, random, Object.keys(claims), (line) => {
    const [name, value] = random.pick(claims[String(line['type'])] ?? []);
    return [{ ...line, payload: { ...payloadOf(line), [name]: value } }, `${name} ${String(value)}`];
  });
};

/** Changes the balance or the block of a join's token. */
const balance: Change = (draft, random) => {
  const joins = draft.lines.filter(({ line }) => line['type'] === 'chamber.joined' && 'token' in payloadOf(line));
  if (joins.length === 0) return false;
  const entry = random.pick(joins);
  const payload = payloadOf(entry.line);
  const token = payload['token'] as Line;
  const name = random.pick(Object.keys(token));
  const line = {
    ...entry.line,
    payload: { ...payload, token: { ...token, [name]: similarValue(token[name] ?? null) } },
  };
  draft.lines = draft.lines.with(draft.lines.indexOf(entry), { ...entry, line });
  draft.descriptions.push(`a different ${name} in the token of a join`);
  return true;
};

const EXTREME_TIMES = ['1970-01-01T00:00:00.000Z', '2020-06-01T00:00:00.000Z', '9999-12-31T23:59:59.000Z'];

/** Signs one of the relayer's transactions again at a different nonce, and updates the outcome that names it. */
const nonceOf: Change = async (draft, random) => {
  const entry = random.pick(
    draft.lines.filter(({ line }) => String(line['type']).startsWith('relay.')).concat(NO_ENTRY),
  );
  if (entry === NO_ENTRY) return false;
  const payload = payloadOf(entry.line);
  const sent = await signedAt(String(payload['rawTransaction']), random.pick([0, 3, 7, 8, 9]));
  if (sent === undefined) return false;
  const before = payload['txHash'];
  draft.lines = draft.lines.map((each) => {
    if (payloadOf(each.line)['txHash'] !== before) return each;
    const isRelay = String(each.line['type']).startsWith('relay.');
    const renamed = isRelay ? { ...sent } : { txHash: sent.txHash };
    return { ...each, line: { ...each.line, payload: { ...payloadOf(each.line), ...renamed } } };
  });
  draft.descriptions.push(`${typeOf(entry)} signed at nonce ${sent.nonce}`);
  return true;
};

const NO_ENTRY: Entry = { line: {}, origin: undefined };
const signedTransactions = new Map<string, ReturnType<typeof signed>>();

/** Returns undefined for bytes that are not a transaction. */
async function signedAt(raw: string, nonce: number) {
  const known = signedTransactions.get(`${raw} ${nonce}`);
  if (known !== undefined) return known;
  try {
    const { to, data = '0x', maxFeePerGas: fee = 0n } = parseTransaction(raw as Hex);
    const made = signed(to as Hex, data, { nonce, fee });
    if (signedTransactions.size < 1_000) signedTransactions.set(`${raw} ${nonce}`, made);
    return await made;
  } catch {
    return undefined;
  }
}

/** Makes two outcomes name one transaction, which may not be logged. */
const oneTransaction: Change = (draft, random) => {
  const outcomes = draft.lines.filter(({ line }) => OUTCOMES.includes(String(line['type'])));
  if (outcomes.length < 2) return false;
  const first = random.pick(outcomes);
  const txHash = random.chance(0.5) ? `0x${'ab'.repeat(32)}` : (payloadOf(first.line)['txHash'] ?? null);
  const others = [first, random.pick(outcomes.filter((each) => each !== first))];
  draft.lines = draft.lines.map((each) =>
    others.includes(each) ? { ...each, line: { ...each.line, payload: { ...payloadOf(each.line), txHash } } } : each,
  );
  draft.descriptions.push(`two outcomes by ${String(txHash).slice(0, 6)}`);
  return true;
};

const OUTCOMES = ['chamber.committed', 'idea.deployed', 'idea.deploy_failed'];

/** Writes the digits of a hexadecimal text in uppercase. */
const uppercase: Change = (draft, random) => {
  const hexIn = (line: Line) => leaves(line).filter((path) => /^0x.*[a-f]/.test(String(valueAt(line, path))));
  const alter = (line: Line) => {
    const path = random.pick(hexIn(line));
    const inUppercase = (value: Json) => `0x${String(value).slice(2).toUpperCase()}`;
    return [changed(line, path, inUppercase) as Line, `${path.join('.')} in uppercase`] as const;
  };
  return alterOne(draft, random, alter, (line) => hexIn(line).length > 0);
};

/** Makes the first given line of an account refer to no earlier line. */
const clearFirstPrev: Change = (draft) => {
  for (const [did, entries] of draft.accounts) {
    const [first, ...rest] = entries;
    if (first === undefined || Number(first.line['eventId']) < 2) continue;
    draft.accounts.set(did, [{ ...first, line: { ...first.line, prev: NO_PREVIOUS } }, ...rest]);
    draft.descriptions.push(`the first line of the account of ${did.slice(-4)} refers to no earlier one`);
    return true;
  }
  return false;
};

/** Adds an agent that the operator controls and that joins after the others. */
const join: Change = (draft) => {
  const joins = draft.lines.filter(({ line }) => line['type'] === 'chamber.joined');
  const last = joins.at(-1);
  if (last === undefined || last.line['request'] === null) return false;
  const place = draft.lines.indexOf(last) + 1;
  const { walletAddress: _, token: __, label: ___, ...rest } = payloadOf(last.line);
  const payload = { ...rest, turnOrder: joins.length, walletAddress: `0x${'77'.repeat(20)}`, walletProven: false };
  const body = '{}';
  const line = signedAgain(
    { ...last.line, did: OUTSIDER.did, payload, request: { ...requestOf(last.line), body } },
    OUTSIDER,
  );
  draft.lines = draft.lines.toSpliced(place, 0, { line, origin: undefined });
  draft.descriptions.push(`an outsider joins at ${place}`);
  return true;
};

/** Replaces members of the line's body, and signs it again with its agent's key. */
function withBody(line: Line, members: Line, signer: Signer): Line {
  const body = JSON.stringify({ ...membersIn(requestOf(line)['body']), ...members });
  return signedAgain({ ...line, request: { ...requestOf(line), body } }, signer);
}

/** Returns no members if the body was altered before. */
function membersIn(body: Json | undefined): Line {
  try {
    return Object(JSON.parse(String(body))) as Line;
  } catch {
    return {};
  }
}

function signedAgain(line: Line, signer: Signer): Line {
  const request = requestOf(line);
  const [, created = '0'] = /created=(\d+)/.exec(String(request['signatureInput'])) ?? [];
  const body = String(request['body'] ?? '');
  const parts = { method: String(request['method']), url: String(request['targetUri']), body, nonce: 'again' };
  const headers = signer.sign({ ...parts, created: Number(created) });
  const [contentDigest, signatureInput] = [headers['content-digest'], headers['signature-input']];
  return { ...line, request: { ...request, body, contentDigest, signatureInput, signature: headers.signature } };
}
