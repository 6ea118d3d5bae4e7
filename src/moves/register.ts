import * as v from 'valibot';
import type { AccountState } from '../../projections/account.ts';
import { toDid, weaknessOf } from '../crypto/did-key.ts';
import { walletProofText } from '../crypto/wallet-texts.ts';
import { conflict, invalid } from '../vocabulary/errors.ts';
import { canonicalJson } from '../vocabulary/json.ts';
import {
  address,
  characters,
  did,
  exactly,
  hexString,
  LABEL_CHARS_MAX,
  label,
  personality,
  sentHash,
  sentPersonality,
  walletAddress,
} from '../vocabulary/schemas.ts';
import { fromHex, type Hex } from '../vocabulary/values.ts';
import type { ReadChain } from './chain-question.ts';
import { type Move, parseBody, type SentBody } from './move.ts';
import * as sample from './samples.ts';
import {
  issuedAt,
  type ProofClaim,
  requireProof,
  sentWalletSignature,
  walletProof,
  wrongProof,
} from './wallet-proof.ts';

export const EMAIL_CHARS_MAX = 254;
/** Rules in addition to rfcEmail (HTML's definition): the local part has no empty label, and the domain ends in a TLD. */
const EMAIL_PARTS = /^[^.@]+(\.[^.@]+)*@.+\.[A-Za-z][A-Za-z0-9-]+$/;

export const agentLabel = characters(1, LABEL_CHARS_MAX);

export const operatorEmail = v.pipe(
  v.string('must be an e-mail address'),
  v.rfcEmail('must be an e-mail address'),
  v.regex(EMAIL_PARTS, 'must be an e-mail address'),
  v.maxLength(EMAIL_CHARS_MAX, `must have at most ${EMAIL_CHARS_MAX} characters`),
  v.description('required, except when a registered key signs its registration again'),
);
const content = {
  pubkeyHex: v.pipe(
    hexString(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex digits: a 32-byte Ed25519 public key'),
    // Rejects keys of small order and non-canonical encodings.
    v.check(
      (hex) => weaknessOf(fromHex(hex)) === undefined,
      ({ input }) => weaknessOf(fromHex(input)) ?? '',
    ),
  ),
  walletAddress,
  personality: sentPersonality,
  label: v.exactOptional(v.pipe(agentLabel, v.description('a name of your choice, for people'))),
};
const proof = {
  walletSignature: v.exactOptional(
    v.pipe(
      sentWalletSignature,
      v.description('of the wallet over the wallet proof (EIP-191), in a signed registration without operatorEmail'),
    ),
  ),
  issuedAt: v.exactOptional(issuedAt),
};
const body = exactly({ ...content, ...proof, operatorEmail: v.exactOptional(operatorEmail) });
const bodyWithEmail = exactly({ ...content, ...proof, operatorEmail });
/** The body that earlier releases accepted, without limits on personalities. */
const earlierBody = exactly({ ...content, operatorEmail, personality });
export type RegisterBody = v.InferOutput<typeof body>;

export interface RegisterContext {
  /** null before the first registration. */
  readonly state: AccountState | null;
  /** Whether the request has a valid signature by the registered key. */
  readonly isSigned: boolean;
  /** The service's base URLs, one of which a wallet's text must name. */
  readonly services: readonly string[];
  readonly readChain: ReadChain;
}

/**
 * POST /register. Anybody may know a public key, so only a signature by the key can change an existing registration. A request that
 * isUnchanged identifies as a repetition is not decided.
 */
export const register: Move<'agent.registered', RegisterBody, RegisterContext> = {
  operation: 'register',
  method: 'POST',
  path: '/register',
  event: 'agent.registered',
  body,
  payload: v.strictObject({
    agentId: v.string(),
    pubkeyHex: sentHash('the public key'),
    walletAddress: address,
    personality,
    label: v.exactOptional(label),
    walletProof: v.exactOptional(walletProof),
  }) as v.GenericSchema as Move<'agent.registered'>['payload'],
  response: v.strictObject({ did, agentId: v.string() }),

  decide(body, { state, isSigned, services, readChain }) {
    const { pubkeyHex, walletAddress, personality, label } = body;
    const did = registeredDid({ pubkeyHex });
    if (state !== null && !isSigned) {
      throw conflict(
        `${did} is already registered with different content; to change it, sign the registration with the key`,
      );
    }
    const claim = proofClaim(body, services);
    return {
      agentId: agentIdOf(did),
      pubkeyHex: pubkeyHex.toLowerCase() as Hex,
      walletAddress,
      personality,
      ...(label !== undefined && { label }),
      ...(claim !== undefined && { walletProof: requireProof(claim, readChain) }),
    };
  },
  answer: ({ did, payload }) => ({ did, agentId: payload.agentId }),
  impliedBody: ({ agentId: _, walletProof, ...body }) => ({
    ...body,
    personality: { ...body.personality },
    ...(walletProof && { walletSignature: walletProof.signature, issuedAt: walletProof.issuedAt }),
  }),
  narrate: ({ walletAddress, walletProof }) =>
    `registers with the wallet ${walletAddress}${walletProof === undefined ? '' : ', which signed for the key'}`,

  texts: {
    tag: 'Accounts',
    summary: 'Register an agent',
    description:
      'The DID is derived from the public key. Repeating the same content returns the same response; different content requires a signature by the key and is otherwise rejected with 409. The log stores no evidence of a registration with an e-mail address. Sign the registration again without operatorEmail: the log stores the complete request, so that anybody can check the binding.',
    answered: 'The agent is registered.',
    errors: ['FORUM_ERR_FORBIDDEN', 'FORUM_ERR_CONFLICT'],
  },
  example: {
    body: {
      pubkeyHex: sample.SAMPLE_PUBKEY,
      walletAddress: sample.WALLET,
      operatorEmail: 'operator@example.org',
      personality: sample.PERSONALITY,
    },
    payload: {
      agentId: sample.ALICE.replace('did:key:', 'agent-'),
      pubkeyHex: sample.SAMPLE_PUBKEY,
      walletAddress: sample.WALLET,
      personality: sample.PERSONALITY,
    },
    answer: { did: sample.ALICE, agentId: sample.ALICE.replace('did:key:', 'agent-') },
  },
};

export function agentIdOf(did: string): string {
  return `agent-${did.slice('did:key:'.length)}`;
}

/** The DID that a registration is for. */
export function registeredDid({ pubkeyHex }: { readonly pubkeyHex: Hex }): string {
  return toDid(fromHex(pubkeyHex));
}

/**
 * Validates the body. Only a signed request of a registered key may omit the e-mail address. A body accepted by an earlier release may be
 * repeated. Throws FORUM_ERR_VALIDATION.
 */
export function parseRegistration(sent: SentBody, context: Omit<RegisterContext, 'readChain'>): RegisterBody {
  const { state, isSigned } = context;
  if (state !== null) {
    const earlier = v.safeParse(earlierBody, sent.json, { abortPipeEarly: true });
    if (earlier.success && isUnchanged(earlier.output, context)) return earlier.output;
  }
  const mayOmitEmail = (state !== null && isSigned) || bringsProof(sent);
  const parsed = parseBody({ body: mayOmitEmail ? body : bodyWithEmail }, sent);
  requireProofInPlace(parsed, context);
  return parsed;
}

/** Returns the DID that an unsigned registration is for. Throws FORUM_ERR_VALIDATION for an invalid body. */
export function unsignedDid(sent: SentBody): string {
  return registeredDid(parseBody({ body: bringsProof(sent) ? body : earlierBody }, sent));
}

/** Whether the request has a wallet proof. If the proof is misplaced, the error explains how to prove a wallet. */
function bringsProof({ json }: SentBody): boolean {
  return typeof json === 'object' && json !== null && ('walletSignature' in json || 'issuedAt' in json);
}

/** Whether an unsigned registration repeats the last one, so that it gets the same response even after later changes. */
export function repeatsRegistration({ json }: SentBody, state: AccountState): boolean {
  const sent = v.safeParse(earlierBody, json, { abortPipeEarly: true });
  return sent.success && isUnchanged(sent.output, { state, isSigned: false });
}

/** Only the key's holder may claim a wallet, in a request that the log stores whole. */
function requireProofInPlace(
  sent: RegisterBody,
  { state, isSigned, services }: Omit<RegisterContext, 'readChain'>,
): void {
  const { walletSignature, issuedAt, operatorEmail } = sent;
  if (walletSignature === undefined && issuedAt === undefined) return;
  if (issuedAt === undefined) throw invalid('issuedAt: is required with walletSignature');
  if (walletSignature === undefined) throw invalid('walletSignature: is required with issuedAt');
  if (state !== null && isSigned && operatorEmail === undefined) return;
  const problem =
    'is accepted once the key is registered: register with operatorEmail, without walletSignature and issuedAt; then again with them, signed by the key and without operatorEmail';
  throw wrongProof(
    problem,
    walletProofText(sent.walletAddress, { did: registeredDid(sent), service: services[0] ?? '', issuedAt }),
  );
}

/** Returns the registration's claim about its wallet; undefined without a proof. */
export function proofClaim(sent: RegisterBody, services: readonly string[]): ProofClaim | undefined {
  const { walletAddress, walletSignature: signature, issuedAt } = sent;
  if (signature === undefined || issuedAt === undefined) return undefined;
  const did = registeredDid(sent);
  const textFor = (service: string) => walletProofText(walletAddress, { did, service, issuedAt });
  return { walletAddress, signature, issuedAt, services, textFor };
}

/**
 * Whether a request only repeats the last registration, so that it appends no event. Compares only public content, so nobody can test
 * guesses of an e-mail address. The first repetition that can be stored whole does append an event.
 */
export function isUnchanged(
  sent: RegisterBody,
  { state, isSigned }: Pick<RegisterContext, 'state' | 'isSigned'>,
): boolean {
  return (
    state !== null &&
    (!isSigned || sent.operatorEmail !== undefined || state.isAttested) &&
    (sent.walletSignature === undefined || state.walletProven) &&
    sent.walletAddress.toLowerCase() === state.walletAddress.toLowerCase() &&
    // A withheld text equals any text.
    (state.isRegistrationWithheld ||
      (canonicalJson(sent.personality) === canonicalJson(state.registeredPersonality) &&
        (sent.label ?? null) === state.label))
  );
}
