// The event record, which is the unit of everything: its canonical line is stored, streamed, exported and hashed as it is.
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
  /** The raw text, '' for a request without a body; null in an `agent.registered` of an earlier release whose body held an e-mail address. */
  readonly body: string | null;
  readonly contentDigest: string;
  readonly signatureInput: string;
  readonly signature: string;
}

/** That a wallet signed a text about a key (src/crypto/wallet-texts.ts). */
export interface WalletProof {
  readonly signature: Hex;
  /** The time as it was sent. */
  readonly issuedAt: string;
  /** The base URL of the service, or its origin alone, as the text names it. */
  readonly service: string;
  /** The block at whose state the wallet, a contract, accepted the signature; absent where a private key made it. */
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
  /** Signed by the key itself, whose request is kept, or by a wallet that was proven for it. Nothing of the key follows. */
  'agent.retired':
    | { readonly by: 'key' }
    | { readonly by: 'wallet'; readonly walletAddress: string; readonly walletProof: WalletProof };
}

/** What each signed move of a chamber records of itself. */
interface MoveContents {
  'chamber.created': {
    readonly name: string;
    readonly deadlines: Deadlines;
    readonly minBackersForGraduation: number;
    readonly turnSeconds: number | null;
    readonly topic?: string;
    readonly maxMembers?: number;
    /** With fewer members at the end of LOBBY the chamber is over. */
    readonly minMembers?: number;
    readonly rounds?: Rounds;
    readonly movesPerTurn?: number;
    /** Absent in events of earlier releases. */
    readonly serviceKeys?: PinnedKeys | undefined;
    readonly admission?: Admission;
    /** The chain of `admission.token` and, where the balances of the creation count, their block. */
    readonly token?: { readonly chainId: number } & Partial<BlockReference>;
  };
  /** What the account said at that time is absent in events of earlier releases, the label also where there was none. */
  'chamber.joined': {
    readonly turnOrder: number;
    readonly walletAddress?: string;
    readonly walletProven?: boolean;
    readonly label?: string;
    /** What the wallet held of `admission.token`, as a decimal integer, and in which block. */
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
    /** The proposer's wallet at that time: the creator in deployIdea. */
    readonly creatorWallet: string;
  };
  'chamber.debated': {
    readonly ideaId: string | null;
    readonly comment: string;
    /** Absent only in a stub. */
    readonly refinement?: JsonObject | null;
    /** The eventId of an earlier proposal, comment or amendment. */
    readonly replyTo?: number;
    /** What the member thinks of the idea, and of which version. */
    readonly stance?: Stance;
    readonly version?: number;
  };
  /** The proposer has changed what is given; versions count from 1, the proposal. */
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
  /** The head of the signer's account stream that the decision read; absent in events of earlier releases. */
  readonly accountEventId?: number | undefined;
}

/** Signed moves of a chamber: exactly these are the leaves of its Merkle tree. */
export type MovePayloads = { readonly [Type in keyof MoveContents]: MoveContents[Type] & NamesAccount };

type Records<Payloads, Common> = {
  [Type in keyof Payloads]: Common & {
    /** 1, 2, 3 … within its stream, without gaps. */
    readonly eventId: number;
    readonly type: Type;
    /** ISO 8601 UTC with milliseconds; never falls within a stream. */
    readonly ts: string;
    /** Leaf hash of the event before it in the stream. */
    readonly prev: Hex;
    readonly payload: Payloads[Type];
    /** Only in a stub: the line that replaces an event's line after the service has withheld its texts (texts.ts). */
    readonly withheld?: Withheld;
  };
}[keyof Payloads];

interface Signed {
  readonly did: string;
  /** null for unsigned requests, for stubs whose request held a text, and for registrations whose body held an e-mail address: it would let any reader test a guess. */
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

/** The result of a decision: a type and its payload. The spine adds ids, time and evidence. */
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
 * The event as its canonical line (RFC 8785), without a line break. Every move makes one, so the members common to all events are
 * written in sorted order here, and only the payload takes the general path.
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

/** `<chamberId>:<eventId>` of a line, or of the beginning of one: the cursor of a reader of all chambers. */
export function cursorOf(line: string): string {
  const [, chamberId, eventId] = LINE_HEAD.exec(line) ?? [];
  if (eventId === undefined) throw new Error('the line is not an event of a chamber');
  return `${chamberId}:${eventId}`;
}

/** Reads back a line that this service wrote; other people's lines go through the auditor's checks first. */
export function fromLine(line: string): ForumEvent {
  return JSON.parse(line) as ForumEvent;
}
