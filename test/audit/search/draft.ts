// A draft of a forged history: its lines, the honest original of each, and the input for the auditor.
import { encodeFunctionData, type Hex, parseAbi } from 'viem';
import { MoveAccumulator } from '../../../src/audit/chamber/move-tree.ts';
import { leafHash } from '../../../src/crypto/merkle.ts';
import { canonicalJson } from '../../../src/vocabulary/json.ts';
import { fromHex, NO_PREVIOUS, toHex } from '../../../src/vocabulary/values.ts';
import { type Line, toText } from '../forge.ts';
import { REGISTRY, signed } from '../sample.ts';
import { type History, isMove } from './histories.ts';
import { isStub, signedStub } from './stubs.ts';

export interface Entry {
  readonly line: Line;
  /** The honest original; undefined for an inserted line. */
  readonly origin: Line | undefined;
  /** The honest line, usually of another history, from which an inserted line was derived. */
  readonly source?: Line;
}

export class Draft {
  readonly history: History;
  lines: Entry[];
  readonly accounts: Map<string, Entry[]>;
  readonly descriptions: string[] = [];
  /** Whether numbers and hashes are corrected. */
  isRechained = true;
  /** Whether the service re-signs every stub. */
  signsStubs = false;
  /** Whether the root, the count and the transactions of the commitment are corrected. */
  isRecommitted = false;

  constructor(history: History) {
    this.history = history;
    this.lines = history.lines.map((line) => ({ line, origin: line }));
    const accounts = [...(history.accounts ?? [])];
    this.accounts = new Map(accounts.map(([did, lines]) => [did, lines.map((line) => ({ line, origin: line }))]));
  }

  async texts(): Promise<{ readonly lines: string; readonly accounts: string | undefined }> {
    const lines = this.lines.map(({ line }) => line);
    const settled = this.isRecommitted ? await recommitted(lines, this.signsStubs) : lines;
    const accounts = [...this.accounts.values()].map((entries) => this.#textOf(entries.map(({ line }) => line)));
    return {
      lines: this.#textOf(settled, 1),
      accounts: this.history.accounts === undefined ? undefined : accounts.join(''),
    };
  }

  #textOf(lines: readonly Line[], firstEventId = Number(lines[0]?.['eventId'] ?? 1)): string {
    if (lines.length === 0) return '';
    return toText(
      this.isRechained ? chained(lines, firstEventId, this.signsStubs) : lines.map((line) => canonicalJson(line)),
    );
  }
}

/** Returns the lines with correct numbers and hashes; the first line keeps its `prev` unless it is event 1. */
function chained(lines: readonly Line[], firstEventId: number, signsStubs: boolean): string[] {
  let prev = firstEventId === 1 ? NO_PREVIOUS : String(lines[0]?.['prev']);
  return lines.map((line, index) => {
    const placed: Line = { ...line, eventId: firstEventId + index, prev };
    const text = canonicalJson(signsStubs && isStub(placed) ? signedStub(placed) : placed);
    prev = leafIn(text);
    return text;
  });
}

/** Returns the line's leaf; for a stub, the stated leaf. */
function leafIn(text: string): string {
  const { withheld } = JSON.parse(text) as Line;
  return withheld === undefined ? toHex(leafHash(Buffer.from(text))) : String((withheld as Line)['leaf']);
}

const COMMIT = parseAbi(['function commitChamber(uint256 chamberId, bytes32 root)']);

/** Returns the lines, with the commitment and its transactions holding the root of the moves. */
async function recommitted(lines: readonly Line[], signsStubs: boolean): Promise<readonly Line[]> {
  const moves = lines.filter(isMove);
  const tree = new MoveAccumulator();
  for (const text of chained(moves, 1, signsStubs)) tree.push(fromHex(leafIn(text)));
  const root = tree.root() ?? NO_PREVIOUS;
  const settled: Line[] = [];
  let last: Hex | undefined;
  for (const line of lines) {
    const payload = line['payload'] as Line;
    if (line['type'] === 'relay.commit_submitted') {
      const sent = await commitment(Number(line['chamberId']), root, settled.length);
      last = sent.txHash;
      settled.push({ ...line, payload: { ...sent } });
    } else if (line['type'] === 'chamber.committed') {
      const txHash = last ?? payload['txHash'] ?? null;
      settled.push({ ...line, payload: { ...payload, merkleRoot: root, eventCount: moves.length, txHash } });
    } else settled.push(line);
  }
  return settled;
}

const commitments = new Map<string, ReturnType<typeof signed>>();

/** Caches transactions, because signing takes most of a change's time and most roots recur. */
function commitment(chamberId: number, root: string, place: number): ReturnType<typeof signed> {
  const key = `${chamberId} ${root} ${place}`;
  const known = commitments.get(key);
  if (known !== undefined) return known;
  // An invalid id is replaced by that of another chamber.
  const args = [BigInt(Number.isSafeInteger(chamberId) ? chamberId : 0), root as Hex] as const;
  const data = encodeFunctionData({ abi: COMMIT, functionName: 'commitChamber', args });
  const made = signed(REGISTRY, data, { nonce: 7, fee: 100n + BigInt(place) });
  if (commitments.size < 1_000) commitments.set(key, made);
  return made;
}
