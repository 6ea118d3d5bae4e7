// Honest histories to forge: the sample logs, and a chamber whose members have all kinds of accounts.
import { readFileSync } from 'node:fs';
import type { JudgeContractProof } from '../../../src/audit/account/compare-accounts.ts';
import type { ChamberAudit } from '../../../src/audit/chamber/chamber-audit.ts';
import type { AuditPolicy } from '../../../src/audit/policy.ts';
import type { GivenReceipts } from '../../../src/audit/receipts/given-receipts.ts';
import { givenReceipts } from '../../../src/audit/receipts/given-receipts.ts';
import { verifyKeptReceipt } from '../../../src/crypto/kept-receipt.ts';
import { leafHash } from '../../../src/crypto/merkle.ts';
import type { KeptReceipt } from '../../../src/crypto/receipt.ts';
import type { ChainAnswer, ChainQuestion } from '../../../src/moves/chain-question.ts';
import { canonicalJson } from '../../../src/vocabulary/json.ts';
import { textsIn } from '../../../src/vocabulary/texts.ts';
import { toHex } from '../../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom } from '../../kit/chambers.ts';
import { HOUR, START } from '../../kit/clock.ts';
import { ACCEPT_RECEIPT, receiptOf } from '../../kit/receipts.ts';
import { Signer } from '../../kit/signer.ts';
import { PUBLIC_URL, registrationOf, TestService } from '../../kit/test-service.ts';
import { provenRegistration, retirementBy, walletOf } from '../../kit/wallets.ts';
import { accountOf, type Line, parse } from '../forge.ts';
import { payloadOf } from '../forgeries.ts';
import { ANN, BOB, CAT, fixedKeys } from '../sample.ts';
import { signedStub, stubOver } from './stubs.ts';

export interface History {
  readonly name: string;
  readonly lines: readonly Line[];
  /** Keyed by DID, if the auditor is given accounts. */
  readonly accounts?: ReadonlyMap<string, readonly Line[]>;
  readonly receipts?: GivenReceipts;
  /** A chain that confirms the accepted signature. */
  readonly judgeProof?: JudgeContractProof;
  /** Compares the claims with a real chain. */
  readonly askChain?: (audit: ChamberAudit) => Promise<void>;
  readonly policy?: AuditPolicy;
}

const CHAMBER_ID = 1;
const CONTRACT = { address: `0x${'c0'.repeat(20)}`, signature: `0x${'c1'.repeat(70)}` } as const;
const BLOCK = { chainId: 31_337, blockNumber: 4_242, blockHash: `0x${'b1'.repeat(32)}` } as const;
const signerOf = (digit: number) => new Signer(Buffer.alloc(32, digit));
/** CON has a contract wallet and PER no signed registration; RET is retired by a wallet, and KEY by its own key. */
export const [CON, PER, RET, KEY] = [11, 12, 13, 14].map(signerOf) as [Signer, Signer, Signer, Signer];
/** The agents, and the wallets that they prove, whose keys forgers may have. */
export const SIGNERS: ReadonlyMap<string, Signer> = new Map(
  [ANN, BOB, CAT, CON, PER, RET, KEY].map((signer) => [signer.did, signer]),
);
/** An agent with a key that is in no history. */
export const OUTSIDER = signerOf(15);
export const WALLETS = new Map([1, 2, 3].map(walletOf).map((wallet) => [wallet.address.toLowerCase(), wallet]));

const read = (name: string) =>
  parse(
    readFileSync(new URL(`../../../fixtures/logs/${name}.ndjson`, import.meta.url), 'utf8')
      .trimEnd()
      .split('\n'),
  );

export async function histories(): Promise<readonly History[]> {
  const open = read('chamber');
  const closed = read('chamber-with-admission');
  const accounts = Map.groupBy(read('chamber-with-admission.accounts'), ({ did }) => String(did));
  const all = await playAccounts();
  const { lines } = all;
  return [
    { name: 'the sample', lines: open },
    { name: 'the moves of the sample', lines: open.filter(isMove) },
    { name: 'a chamber with rounds', lines: read('chamber-with-rounds') },
    { name: 'a chamber with amendments', lines: read('chamber-with-amendments') },
    { name: 'a chamber with withheld texts', lines: withStubs(read('chamber-with-amendments'), SPEECHES) },
    {
      name: 'a chamber with withheld labels',
      lines: withStubs(closed, ['chamber.joined', 'chamber.debated']),
      accounts: new Map([...accounts].map(([did, own]) => [did, withStubs(own, ACCOUNT_LINES)])),
    },
    { name: 'a chamber with restricted admission', lines: closed, accounts },
    { name: 'the moves of a chamber with restricted admission', lines: closed.filter(isMove), accounts },
    { name: 'all kinds of accounts', lines, accounts: all.accounts },
    {
      name: 'all kinds of accounts, two of them without their first lines',
      lines,
      accounts: withoutFirst(all.accounts, [PER, KEY]),
    },
    {
      name: 'all kinds of accounts, one of them with only its retirement',
      lines,
      accounts: withLast(all.accounts, KEY),
    },
    { name: 'all kinds of accounts, with a chain', lines, accounts: all.accounts, judgeProof },
    { name: 'all kinds of accounts, with receipts', lines, accounts: all.accounts, receipts: all.receipts, judgeProof },
  ];
}

const SPEECHES = ['chamber.proposed', 'chamber.amended', 'chamber.debated', 'relay.deploy_submitted'];
const ACCOUNT_LINES = ['agent.registered', 'agent.personality_changed'];

/** Returns the lines, withholding those of these types that hold texts. */
function withStubs(lines: readonly Line[], types: readonly string[]): readonly Line[] {
  return lines.map((line) => {
    const isWithheld =
      types.includes(String(line['type'])) && textsIn(String(line['type']), payloadOf(line)).length > 0;
    return isWithheld ? signedStub(stubOver(line, toHex(leafHash(Buffer.from(canonicalJson(line)))))) : line;
  });
}

function withoutFirst(accounts: ReadonlyMap<string, readonly Line[]>, of: readonly Signer[]) {
  const dids = of.map(({ did }) => did);
  return new Map([...accounts].map(([did, lines]) => [did, dids.includes(did) ? lines.slice(1) : lines]));
}

function withLast(accounts: ReadonlyMap<string, readonly Line[]>, { did }: Signer) {
  return new Map(accounts).set(did, (accounts.get(did) ?? []).slice(-1));
}

export function isMove({ did }: Line): boolean {
  return did !== null;
}

/** Confirms CON's accepted signature, in its block only. */
const judgeProof: JudgeContractProof = async ({ wallet, signature, chainId, blockNumber, blockHash }) => {
  const isAccepted =
    wallet === CONTRACT.address &&
    signature === CONTRACT.signature &&
    chainId === BLOCK.chainId &&
    blockNumber === BLOCK.blockNumber &&
    blockHash === BLOCK.blockHash;
  return isAccepted ? undefined : `the contract ${wallet} does not accept the recorded signature`;
};

function answerTo(question: ChainQuestion): ChainAnswer {
  if (question.kind !== 'signature' || question.signature !== CONTRACT.signature) return null;
  const [hash = '0x'] = question.hashes;
  return { ...BLOCK, hash };
}

class Play {
  readonly service = new TestService({ keys: fixedKeys });
  readonly receipts: KeptReceipt[] = [];
  #key: KeptReceipt['key'] | undefined;

  /** Sends a command a second after the previous one, and keeps the receipt. */
  async act(by: Signer, path: string, body: object = {}, method = 'POST'): Promise<void> {
    this.service.clock.advance(1_000);
    const headers = { 'accept-signature': ACCEPT_RECEIPT };
    const sent = this.service.prepare(method, path, { by, body, headers });
    const answer = await this.service.send(sent);
    if (answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    // A creation's request names no chamber, so its receipt proves little without a service.
    if (!answer.headers.has('event') || path === '/chambers') return;
    this.receipts.push({ ...receiptOf(sent, answer, PUBLIC_URL), key: await this.#receiptsKey() });
  }

  /** Makes a move that names the chamber's last event as seen. */
  async move(by: Signer, path: string, body: object = {}): Promise<void> {
    const lines = await this.service.lines(CHAMBER_ID);
    const seen = { eventId: lines.length, leaf: toHex(leafHash(Buffer.from(lines.at(-1) ?? ''))) };
    await this.act(by, `/chambers/${CHAMBER_ID}/${path}`, { ...body, seen });
  }

  async #receiptsKey(): Promise<KeptReceipt['key']> {
    if (this.#key !== undefined) return this.#key;
    const { keys } = await this.service.must('GET', '/.well-known/http-message-signatures-directory');
    const { kty, crv, x } = keys.find(({ purpose }: { readonly purpose: string }) => purpose === 'receipts');
    this.#key = { kty, crv, x };
    return this.#key;
  }
}

async function playAccounts() {
  const play = new Play();
  const { service } = play;
  service.forum.useChain({ answer: async (question) => answerTo(question) });
  await register(play);
  const pace = {
    turnSeconds: 600,
    movesPerTurn: 3,
    maxMembers: 5,
    topic: 'Where the water goes',
    minBackersForGraduation: 2,
  };
  await play.act(CON, '/chambers', { name: 'A garden of all', ...deadlinesFrom(START), ...pace });
  for (const member of [CON, PER, RET, KEY]) await play.move(member, 'join');
  service.clock.set(START + HOUR);
  await play.move(CON, 'propose', { name: 'Compost', ticker: 'SOIL', description: 'For all.' });
  await play.move(CON, 'pass');
  await play.act(PER, '/personality', { patch: { style: 'dry' } }, 'PUT');
  await play.move(PER, 'propose', { name: 'Rain', ticker: 'RAIN' });
  await play.move(PER, 'pass');
  service.clock.set(START + 2 * HOUR);
  await play.move(CON, 'debate', { ideaId: 'idea-1', comment: 'Worms first.', refinement: { budget: '12' } });
  await play.move(CON, 'pass');
  await play.move(PER, 'debate', { comment: 'Rain first.' });
  const allocations = [CON, PER, RET, KEY].map(
    (by) => [by, allocationOf(1, by, { 'idea-1': 6_000, 'idea-2': 1 })] as const,
  );
  service.clock.set(START + 3 * HOUR);
  for (const [by, { commit }] of allocations) await play.move(by, 'allocate/commit', commit);
  service.clock.set(START + 4 * HOUR);
  for (const [by, { reveal }] of allocations) await play.move(by, 'allocate/reveal', reveal);
  await retire(play);
  const accounts = new Map<string, readonly Line[]>();
  for (const by of [CON, PER, RET, KEY]) accounts.set(by.did, await accountOf(service, by));
  const lines = parse(await service.lines(CHAMBER_ID));
  const all = play.receipts.map((kept) => ({ kept, parsed: verifyKeptReceipt(kept) }));
  return { lines, accounts, receipts: givenReceipts(all) };
}

/** Registrations with an e-mail address are recorded without the request; CON's last one changes only the label. */
async function register(play: Play): Promise<void> {
  const { service } = play;
  for (const by of [CON, PER, RET, KEY]) await service.must('POST', '/register', { body: contentOf(by) });
  service.clock.advance(1_000);
  const issuedAt = new Date(service.clock.read()).toISOString();
  const proven = { ...withoutEmail(contentOf(CON)), walletSignature: CONTRACT.signature, issuedAt };
  await play.act(CON, '/register', proven);
  await play.act(CON, '/register', { ...contentOf(CON), label: 'Con' });
  await play.act(RET, '/register', await provenRegistration(service, RET, walletOf(2)));
  await play.act(KEY, '/register', { ...withoutEmail(contentOf(KEY)), label: 'Key' });
  await play.act(PER, '/personality', { patch: { loves: ['rain'] } }, 'PUT');
  service.clock.advance(20_000);
}

function contentOf(by: Signer) {
  const walletAddress = by === CON ? CONTRACT.address : walletOf([PER, RET, KEY].indexOf(by) + 1).address;
  return { ...registrationOf(by), walletAddress: walletAddress as string };
}

function withoutEmail({ operatorEmail: _, ...content }: ReturnType<typeof contentOf>) {
  return content;
}

async function retire(play: Play): Promise<void> {
  const { service } = play;
  service.clock.advance(60_000);
  await play.act(KEY, '/me/retire');
  const issuedAt = new Date(service.clock.read()).toISOString();
  const body = await retirementBy(walletOf(2), RET.did, { issuedAt });
  await service.must('POST', `/agents/${RET.did}/retire`, { body });
}
