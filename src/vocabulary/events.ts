// The event record. Its canonical line is stored, streamed, exported and hashed unchanged.
import { canonicalJson } from './json.ts';
import type { ServicePayloads } from './service-payloads.ts';
import type {
  Admission,
  Allocation,
  BlockReference,
  Deadlines,
  Hex,
  JsonObject,
  Personality,
  PinnedKeys,
  Rounds,
  Stance,
} from './values.ts';
import type { Withheld } from './withheld.ts';

/** The evidence of a signed command, exactly as received (RFC 9421, RFC 9530). */
export interface RequestEvidence {
  readonly method: string;
  readonly targetUri: string;
  /** The raw text; '' for a request without a body; null in registrations by earlier releases whose body contained an e-mail address. */
  readonly body: string | null;
  readonly contentDigest: string;
  readonly signatureInput: string;
  readonly signature: string;
}

/** Proof that a wallet signed a text about a key (src/crypto/wallet-texts.ts). */
export interface WalletProof {
  readonly signature: Hex;
  /** The time, exactly as sent. */
  readonly issuedAt: string;
  /** The service's base URL or origin, as named in the text. */
  readonly service: string;
  /** The block at which a contract wallet accepted the signature; absent if a private key signed. */
  readonly chainId?: number;
  readonly blockNumber?: number;
  readonly blockHash?: Hex;
}

export interface AccountPayloads {
  'agent.registered': {
    readonly agentId: string;
    readonly pubkeyHex: Hex;
    readonly walletAddress: string;
    readonly personality: Personality;
    readonly label?: string;
    readonly walletProof?: WalletProof;
  };
  /** `personality` is the complete personality after the patch. */
  'agent.personality_changed': { readonly patch: Personality; readonly personality: Personality };
  /** Signed by the key itself or by a wallet proven for it. The last event of the account. */
  'agent.retired':
    | { readonly by: 'key' }
    | { readonly by: 'wallet'; readonly walletAddress: string; readonly walletProof: WalletProof };
}

/** The payloads of a chamber's signed moves. */
interface MoveContents {
  'chamber.created': {
    readonly name: string;
    readonly deadlines: Deadlines;
    readonly minBackersForGraduation: number;
    readonly turnSeconds: number | null;
    readonly topic?: string;
    readonly maxMembers?: number;
    /** If the chamber has fewer members at the end of LOBBY, it is over. */
    readonly minMembers?: number;
    readonly rounds?: Rounds;
    readonly movesPerTurn?: number;
    /** Absent in events of earlier releases. */
    readonly serviceKeys?: PinnedKeys | undefined;
    readonly admission?: Admission;
    /** The chain of `admission.token`, and the block of the balances if the rule refers to the creation. */
    readonly token?: { readonly chainId: number } & Partial<BlockReference>;
  };
  /** Account data is absent in events of earlier releases; the label is also absent if the account has none. */
  'chamber.joined': {
    readonly turnOrder: number;
    readonly walletAddress?: string;
    readonly walletProven?: boolean;
    readonly label?: string;
    /** The wallet's balance of `admission.token` as a decimal integer, and the block of the reading. */
    readonly token?: BlockReference & { readonly balance: string };
  };
  /** The creator has added `did` to the agents that may join. */
  'chamber.admitted': { readonly did: string };
  'chamber.started': object;
  'chamber.proposed': {
    readonly ideaId: string;
    readonly slot: number;
    readonly name: string;
    readonly ticker: string;
    readonly description: string;
    /** The proposer's wallet at that time; becomes `creator` in deployIdea. */
    readonly creatorWallet: string;
  };
  'chamber.debated': {
    readonly ideaId: string | null;
    readonly comment: string;
    /** Absent only in a stub. */
    readonly refinement?: JsonObject | null;
    /** The eventId of an earlier proposal, comment or amendment. */
    readonly replyTo?: number;
    /** The member's stance on the idea, and the version it refers to. */
    readonly stance?: Stance;
    readonly version?: number;
  };
  /** Contains only the changed members. The proposal is version 1. */
  'chamber.amended': {
    readonly ideaId: string;
    readonly version: number;
    readonly name?: string;
    readonly description?: string;
  };
  'chamber.withdrawn': { readonly ideaId: string };
  'chamber.passed': { readonly nextTurnAgent: string };
  'allocation.committed': { readonly commitment: Hex };
  'allocation.revealed': { readonly allocations: readonly Allocation[]; readonly salt: Hex };
}

interface NamesAccount {
  /** The signer's last account event that the decision took into account; absent in events of earlier releases. */
  readonly accountEventId?: number | undefined;
}

/** The signed moves of a chamber, which are the leaves of its Merkle tree. */
export type MovePayloads = { readonly [Type in keyof MoveContents]: MoveContents[Type] & NamesAccount };

type Records<Payloads, Common> = {
  [Type in keyof Payloads]: Common & {
    /** 1, 2, 3 … within its stream, without gaps. */
    readonly eventId: number;
    readonly type: Type;
    /** ISO 8601 UTC with milliseconds; never decreases within a stream. */
    readonly ts: string;
    /** The leaf hash of the stream's previous event. */
    readonly prev: Hex;
    readonly payload: Payloads[Type];
    /** Only in a stub, the line that replaces an event's line after the service has withheld the texts (texts.ts). */
    readonly withheld?: Withheld;
  };
}[keyof Payloads];

interface Signed {
  readonly did: string;
  /**
   * null for unsigned requests, and where the signature would let readers test a guess: in stubs whose request contained a text, and in
   * registrations with an e-mail address.
   */
  readonly request: RequestEvidence | null;
}

export type AccountEvent = Records<AccountPayloads, Signed & { readonly chamberId: null }>;
export type MoveEvent = Records<MovePayloads, Signed & { readonly chamberId: number }>;
export type ServiceEvent = Records<
  ServicePayloads,
  { readonly did: null; readonly request: null; readonly chamberId: number }
>;
export type ChamberEvent = MoveEvent | ServiceEvent;
export type ForumEvent = AccountEvent | ChamberEvent;

/** The result of a decision: an event type and its payload. The commit adds ids, time and evidence. */
export type Fact<Payloads> = {
  [Type in keyof Payloads]: { readonly type: Type; readonly payload: Payloads[Type] };
}[keyof Payloads];
export type AccountFact = Fact<AccountPayloads>;
export type MoveFact = Fact<MovePayloads>;
export type ServiceFact = Fact<ServicePayloads>;

const SERVICE_TYPES: ReadonlySet<string> = new Set<keyof ServicePayloads>([
  'relay.commit_submitted',
  'chamber.committed',
  'relay.deploy_submitted',
  'idea.deployed',
  'idea.deploy_failed',
]);

/** Whether the event is a leaf of its chamber's Merkle tree. */
export function isMove(event: ChamberEvent): event is MoveEvent {
  return !SERVICE_TYPES.has(event.type);
}

/**
 * Returns the event's canonical line (RFC 8785), without a line break. Every move needs one, so the common members are written here in
 * sorted order, and only the payload goes through canonicalJson.
 */
export function toLine({ chamberId, did, eventId, payload, prev, request, ts, type, withheld }: ForumEvent): string {
  const signer = did === null ? 'null' : `"${did}"`;
  const stub = withheld === undefined ? '' : `,"withheld":${canonicalJson(withheld)}`;
  return (
    `{"chamberId":${chamberId},"did":${signer},"eventId":${eventId},"payload":${canonicalJson(payload)},` +
    `"prev":"${prev}","request":${request === null ? 'null' : toEvidence(request)},"ts":"${ts}","type":"${type}"${stub}}`
  );
}

function toEvidence({ body, contentDigest, method, signature, signatureInput, targetUri }: RequestEvidence): string {
  return (
    `{"body":${JSON.stringify(body)},"contentDigest":${JSON.stringify(contentDigest)},"method":"${method}",` +
    `"signature":${JSON.stringify(signature)},"signatureInput":${JSON.stringify(signatureInput)},` +
    `"targetUri":${JSON.stringify(targetUri)}}`
  );
}

const LINE_HEAD = /^\{"chamberId":(\d+),"did":(?:null|"[^"]*"),"eventId":(\d+),/;

/** Returns `<chamberId>:<eventId>` of a line or a prefix of one: the cursor for readers of all chambers. */
export function cursorOf(line: string): string {
  const [, chamberId, eventId] = LINE_HEAD.exec(line) ?? [];
  if (eventId === undefined) throw new Error('the line is not a chamber event');
  return `${chamberId}:${eventId}`;
}

/** Parses a trusted line, which this service wrote. Untrusted lines must go through the auditor's checks. */
export function fromLine(line: string): ForumEvent {
  return JSON.parse(line) as ForumEvent;
}
