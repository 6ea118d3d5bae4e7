// Events as agents would have caused them, each with evidence of the usual length. The digest is correct; the signature is a unique
// placeholder, because only the auditor verifies it, and a million real ones would take too long.
import { createHash } from 'node:crypto';
import { signatureKey } from '../../../src/crypto/http-signature.ts';
import { parseBody } from '../../../src/moves/move.ts';
import { register } from '../../../src/moves/register.ts';
import { NO_CONTRACT } from '../../../src/moves/wallet-proof.ts';
import type { AccountFact, MoveFact, RequestEvidence } from '../../../src/vocabulary/events.ts';
import { DEADLINES, type Deadlines, type Millis, toTimestamp } from '../../../src/vocabulary/values.ts';
import type { Agent } from '../load/agents.ts';

export interface Author {
  readonly did: string;
  readonly request: RequestEvidence | null;
  readonly signature: string | null;
}

const ADDRESS = 'http://127.0.0.1:8787';
const SIGNATURE_BYTES = 64;
const YEAR_MILLIS = 31_536_000_000;

export function registration({ did, pubkeyHex }: Agent): [AccountFact, Author] {
  const body = {
    pubkeyHex,
    walletAddress: `0x${pubkeyHex.slice(2, 42)}`,
    operatorEmail: 'operator@example.org',
    personality: { style: 'brief' },
  };
  const command = parseBody(register, { json: body });
  const payload = register.decide(command, { state: null, isSigned: false, services: [], readChain: NO_CONTRACT });
  return [
    { type: register.event, payload },
    { did, request: null, signature: null },
  ];
}

/** Returns a creation whose LOBBY and PROPOSAL end at `debateFrom`. */
export function creation(agent: Agent, debateFrom: Millis): [MoveFact, Author] {
  const ends = [
    debateFrom,
    debateFrom,
    debateFrom + 10 * YEAR_MILLIS,
    debateFrom + 11 * YEAR_MILLIS,
    debateFrom + 12 * YEAR_MILLIS,
  ];
  const deadlines = Object.fromEntries(
    DEADLINES.map((name, index) => [name, toTimestamp(ends[index] ?? 0)]),
  ) as Deadlines;
  const body = { name: 'What should we build?', ...deadlines, minBackersForGraduation: 2 };
  const { name, minBackersForGraduation } = body;
  const fact: MoveFact = {
    type: 'chamber.created',
    payload: { name, deadlines, minBackersForGraduation, turnSeconds: null },
  };
  return [fact, evidence(agent, '/chambers', JSON.stringify(body))];
}

export function joining(agent: Agent, chamberId: number, turnOrder: number): [MoveFact, Author] {
  return [{ type: 'chamber.joined', payload: { turnOrder } }, evidence(agent, `/chambers/${chamberId}/join`, '{}')];
}

/** Returns a move; the agents debate and pass in turn. */
export function move(agents: readonly Agent[], chamberId: number, index: number): [MoveFact, Author] {
  const turn = Math.floor(index / 2);
  const [agent, next] = [agents[turn % agents.length] as Agent, agents[(turn + 1) % agents.length] as Agent];
  if (index % 2 === 1) {
    const fact: MoveFact = { type: 'chamber.passed', payload: { nextTurnAgent: next.did } };
    return [fact, evidence(agent, `/chambers/${chamberId}/pass`, '{}')];
  }
  const comment = `Before anything is spent on growth the reserve should cover two quarters of costs (${index}).`;
  const refinement = { confidence: 0.7, step: index };
  const fact: MoveFact = { type: 'chamber.debated', payload: { ideaId: null, comment, refinement } };
  return [fact, evidence(agent, `/chambers/${chamberId}/debate`, JSON.stringify({ comment, refinement }))];
}

let made = 0;

function evidence({ did }: Agent, path: string, body: string): Author {
  const signature = Buffer.alloc(SIGNATURE_BYTES, 0x5a);
  signature.writeUInt32BE(++made);
  const created = 1_800_000_000 + Math.floor(made / 1_000);
  const digest = createHash('sha256').update(body).digest('base64');
  const params = `("@method" "@target-uri" "content-digest");created=${created};keyid="${did}";alg="ed25519";nonce="${made.toString(36)}"`;
  const request = {
    method: 'POST',
    targetUri: ADDRESS + path,
    body,
    contentDigest: `sha-256=:${digest}:`,
    signatureInput: `sig1=${params}`,
    signature: `sig1=:${signature.toString('base64')}:`,
  };
  return { did, request, signature: signatureKey({ created, signature }) };
}
