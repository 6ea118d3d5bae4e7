// Forges exports: parses lines, alters them, and recomputes numbers and hashes.
import { expect } from 'vitest';
import { type Accounts, listedAccounts } from '../../src/audit/account/accounts.ts';
import { compareAccounts } from '../../src/audit/account/compare-accounts.ts';
import type { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { judgeContractProof } from '../../src/audit/chain/contract-signatures.ts';
import { readTransaction } from '../../src/audit/chain/contracts.ts';
import { type AuditOptions, ChamberAudit } from '../../src/audit/chamber/chamber-audit.ts';
import { CrossCheckedTree } from '../../src/audit/chamber/cross-checked-tree.ts';
import { type AuditClock, type AuditContext, auditContext } from '../../src/audit/context.ts';
import { readLines } from '../../src/audit/line/input.ts';
import { leafOf } from '../../src/audit/line/leaf.ts';
import type { AuditPolicy } from '../../src/audit/policy.ts';
import type { CheckName, CheckResult, Finding } from '../../src/audit/report/findings.ts';
import { toAuditReport, toReport } from '../../src/audit/report/report.ts';
import type { ChamberReport } from '../../src/audit/report/report-types.ts';
import { diagnose } from '../../src/audit/report/verdict.ts';
import { isSignedBy, type VerifyingKey } from '../../src/crypto/verify.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { type Hex, NO_PREVIOUS, toHex } from '../../src/vocabulary/values.ts';
import type { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, type TestService } from '../kit/test-service.ts';
import { auditInBrowser } from './browser-core.ts';
import { expectReport } from './report-schema.ts';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Line = { [name: string]: Json };

export function parse(lines: readonly string[]): Line[] {
  return lines.map((line) => JSON.parse(line) as Line);
}

export async function accountOf(service: TestService, { did }: Signer): Promise<Line[]> {
  const { ndjson } = await service.log.readPage(did, 0, 100);
  return parse(ndjson.toString().trimEnd().split('\n'));
}

/** The lines, with one line's members and payload members replaced. */
export function altered(lines: readonly Line[], eventId: number, payload: Line, members: Line = {}): Line[] {
  const before = lines[eventId - 1] as Line;
  const changed = { ...before, ...members, payload: { ...(before['payload'] as Line), ...payload } };
  return lines.with(eventId - 1, changed) as Line[];
}

/** The lines with correct numbers and hashes, as if the service rewrote its log. */
export function rechained(records: readonly Line[]): string[] {
  const lines: string[] = [];
  for (const [index, record] of records.entries()) {
    const before = lines.at(-1);
    const prev = before === undefined ? NO_PREVIOUS : toHex(leafOf(Buffer.from(before)));
    lines.push(canonicalJson({ ...record, eventId: index + 1, prev }));
  }
  return lines;
}

export interface ForgedMove {
  readonly by: Signer;
  readonly type: string;
  /** Relative to the chamber's path, e.g. `join`; absolute if it begins with `/`. */
  readonly path: string;
  readonly at: number;
  readonly body?: Json;
  /** Omits accountEventId, which defaults to 1. */
  readonly payload: Line;
  /** The service's address; defaults to PUBLIC_URL. */
  readonly origin?: string;
  /** Seconds after the signature's creation. */
  readonly expires?: number;
}

/** Returns a line with a valid signature, whether or not the move is allowed. */
export function signedLine({ type, path, payload, origin = PUBLIC_URL, ...move }: ForgedMove): Line {
  const targetUri = origin + (path.startsWith('/') ? path : `/chambers/1/${path}`);
  const request = signedRequest({ ...move, type, targetUri });
  return lineOf(1, { ...move, type, request, payload: { accountEventId: 1, ...payload } });
}

/** Returns a line of an account with a valid signature; `path` is absolute. */
export function signedAccountLine({ type, path, payload, origin = PUBLIC_URL, ...move }: ForgedMove): Line {
  const request = signedRequest({ ...move, type, targetUri: origin + path });
  return lineOf(null, { ...move, type, request, payload });
}

type Forged = Pick<ForgedMove, 'by' | 'at' | 'type'>;

function lineOf(
  chamberId: number | null,
  { by, at, type, ...content }: Forged & Record<'payload' | 'request', Line>,
): Line {
  const { payload, request } = content;
  return { eventId: 0, chamberId, type, did: by.did, ts: new Date(at).toISOString(), prev: '', payload, request };
}

type ForgedRequest = Forged & Pick<ForgedMove, 'body' | 'expires'> & { readonly targetUri: string };

function signedRequest({ by, at, type, body, expires, targetUri }: ForgedRequest): Line {
  const text = body === undefined ? '' : JSON.stringify(body);
  const created = Math.floor(at / 1000);
  const parts = { method: 'POST', url: targetUri, body: text, created, nonce: `forged-${type}-${at}` };
  const headers = by.sign({ ...parts, ...(expires === undefined ? {} : { expires: created + expires }) });
  const { 'content-digest': contentDigest, 'signature-input': signatureInput, signature } = headers;
  return { method: 'POST', targetUri, body: text, contentDigest, signatureInput, signature };
}

export interface Outcome {
  readonly broken: readonly CheckName[];
  readonly named: ReadonlySet<number>;
  findings(name: CheckName): readonly Finding[];
  check(name: CheckName): CheckResult;
}

interface Rules extends AuditPolicy {
  readonly verify?: typeof isSignedBy;
  readonly accounts?: string;
  /** Returns whether a contract accepts the signature. */
  readonly chain?: AuditedChain;
}

/** Audits the text. If signatures are verified, also compares the findings with those of the core in a browser. */
export async function audit(
  text: string | Uint8Array,
  { verify = verifyOnce, accounts, chain, ...policy }: Rules = {},
): Promise<Outcome> {
  const chamberAudit = await auditLines(text, policy, { verify });
  await compareAccounts(
    chamberAudit,
    accounts === undefined ? undefined : await accountsOf(accounts, chamberAudit.context),
    chain && ((proof) => judgeContractProof(proof, { chain, policy })),
  );
  const results = chamberAudit.findings.results();
  if (verify === verifyOnce && chain === undefined) {
    const request = { bytes: bytesOf(text), policy, accounts: accounts === undefined ? undefined : bytesOf(accounts) };
    expect(await auditInBrowser(request)).toEqual(results);
  }
  const check = (name: CheckName) => results.find((result) => result.name === name) as CheckResult;
  return {
    broken: results.filter(({ verdict }) => verdict === 'broken').map(({ name }) => name),
    named: new Set(results.flatMap(({ findings }) => findings.flatMap(({ eventIds }) => eventIds))),
    findings: (name) => check(name).findings,
    check,
  };
}

interface Lenient extends Pick<AuditOptions, 'assumptions' | 'context'> {
  readonly verify?: typeof isSignedBy;
}

/** Later than all lines, so that no result depends on the clock. */
const LATER: AuditClock = { now: () => Date.UTC(9999, 0, 1), isStated: false };

/** Audits only the lines. */
export async function auditLines(text: string | Uint8Array, policy: AuditPolicy, more: Lenient = {}) {
  const { verify = verifyOnce, assumptions, context = { ...auditContext(policy, verify, LATER), keys } } = more;
  const chamberAudit = new ChamberAudit({
    moves: new CrossCheckedTree(),
    context,
    readTransaction: readOnce,
    assumptions,
  });
  await chamberAudit.takeAll(readLines(chunksOf(Buffer.from(text))));
  chamberAudit.conclude();
  return chamberAudit;
}

/** Returns the report that the command prints. */
export async function report(
  text: string | Uint8Array,
  { now = 0, ...policy }: AuditPolicy & { readonly now?: number } = {},
): Promise<ChamberReport> {
  const chamberAudit = await auditLines(text, policy);
  const diagnosis = await diagnose(chamberAudit, (assumptions) => auditLines(text, policy, { assumptions }));
  const chamber = toReport(chamberAudit, { source: 'text', chamberId: null, logId: null, diagnosis, now });
  expectReport(toAuditReport('text', { problems: [], chambers: [chamber] }));
  return chamber;
}

export async function accountsOf(text: string, context: AuditContext): Promise<Accounts> {
  return await listedAccounts(readLines(chunksOf(Buffer.from(text))), context);
}

// Thousands of audits share most keys, signatures and transactions, and each costs milliseconds of curve arithmetic.
export const keys = new Map<string, VerifyingKey>();
const verdicts = new Map<string, boolean>();
const transactions = new Map<Hex, ReturnType<typeof readTransaction>>();

const REMEMBERED_MAX = 20_000;

/** Caches verdicts by key, message and signature, so that an altered message or signature is verified again. */
export function verifyOnce(key: VerifyingKey, message: Uint8Array, signature: Uint8Array): boolean {
  const question = [key.bytes, message, signature].map((bytes) => Buffer.from(bytes).toString('latin1')).join('|');
  const verdict = verdicts.get(question) ?? isSignedBy(key, message, signature);
  if (verdicts.size >= REMEMBERED_MAX) verdicts.clear();
  verdicts.set(question, verdict);
  return verdict;
}

export function readOnce(rawTransaction: Hex): ReturnType<typeof readTransaction> {
  const transaction = transactions.get(rawTransaction) ?? readTransaction(rawTransaction);
  if (transactions.size >= REMEMBERED_MAX) transactions.clear();
  transactions.set(rawTransaction, transaction);
  return transaction;
}

function bytesOf(text: string | Uint8Array): Uint8Array {
  return typeof text === 'string' ? new TextEncoder().encode(text) : text;
}

export function toText(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/** Splits the bytes at arbitrary offsets, like a network. */
async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) yield bytes.subarray(start, start + CHUNK_BYTES);
}

const CHUNK_BYTES = 1_009;
