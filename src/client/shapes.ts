// The members of responses and lines that the client, and programs built on it, read. The client checks them, because it does not trust the
// service. Unlike the published schemas, these shapes allow other members and types, which later versions may add.
import type { StanceCounts } from '../../projections/ideas.ts';
import type { OutcomeIdea, OutcomeMember, OutcomeView } from '../../projections/outcome.ts';
import type { TodoView } from '../../projections/todo.ts';
import {
  type AccountView,
  type AllocationsView,
  type ChamberIdeaView,
  type ChamberItemView,
  type ChamberView,
  ENDS,
  type EndsView,
  type ListedChamber,
} from '../../projections/views.ts';
import {
  flag,
  integer,
  listOf,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  timestamp,
} from '../reading/shape.ts';
import { type ChamberEvent, isMove, type MovePayloads, type RequestEvidence } from '../vocabulary/events.ts';
import type { RelayTransaction, ServicePayloads } from '../vocabulary/service-payloads.ts';
import {
  type Admission,
  type Allocation,
  DEADLINES,
  type Deadlines,
  PHASES,
  type Rounds,
  STANCES,
  type TokenRule,
} from '../vocabulary/values.ts';
import type { CallbackState, ChallengeCallback, DueCallback } from './callback-types.ts';

export const ANY_OBJECT = object({});

const phase = oneOf(PHASES);
const texts = listOf(text);
const deadlines = object<Deadlines>(Object.fromEntries(DEADLINES.map((name) => [name, timestamp])));
const allocations = listOf(object<Allocation>({ ideaId: text, bps: integer }));

export const INFO = object({ name: text, version: text });

export const CALLBACK = object<CallbackState>({
  url: nullable(text),
  since: nullable(timestamp),
  lastDelivery: nullable(object({ at: timestamp, status: nullable(integer) })),
  failures: integer,
  removed: optional(text),
});

export const TYPED = object({ type: text });
export const DUE_CALLBACK = object<DueCallback>({
  did: text,
  service: text,
  logId: text,
  due: object<DueCallback['due']>({
    chamberId: integer,
    must: oneOf(['pass', 'commit', 'reveal']),
    phaseEndsAt: nullable(timestamp),
    turnEndsAt: nullable(timestamp),
    lastEventId: integer,
  }),
  more: integer,
});
export const CHALLENGE_CALLBACK = object<ChallengeCallback>({ challenge: text });

const chain = object({
  chainId: integer,
  registryAddress: text,
  factoryAddress: text,
  rpcUrl: optional(text),
  relayer: optional(object({ reason: optional(text) })),
});
export const HEALTH = object({ ok: flag, env: text, chain: optional(nullable(chain)) });

const chamberItem = { chamberId: integer, phase, name: text, deadlines } as const;

export const CHAMBERS = listOf(
  object<ChamberItemView & Partial<ListedChamber>>({
    ...chamberItem,
    memberCount: integer,
    phaseEndsAt: optional(nullable(timestamp)),
  }),
);

const admission = object<Admission>({
  dids: optional(texts),
  provenWallets: optional(flag),
  token: optional(object<TokenRule>({ address: text, minBalance: text, at: text })),
});

export const CHAMBER = object<ChamberView>({
  ...chamberItem,
  topic: nullable(text),
  admission: optional(nullable(admission)),
  ends: object<EndsView>(Object.fromEntries(ENDS.map((name) => [name, timestamp]))),
  members: texts,
  currentTurnAgent: nullable(text),
  now: timestamp,
  phaseEndsAt: nullable(timestamp),
  turnEndsAt: nullable(timestamp),
  ideas: listOf(
    object<ChamberView['ideas'][number]>({
      ideaId: text,
      ticker: text,
      name: text,
      creator: text,
      version: optional(integer),
      withdrawn: optional(flag),
    }),
  ),
});

const stances = object<StanceCounts>({ for: integer, against: integer, undecided: integer, outdated: integer });

/** Earlier releases do not send the optional members. */
export const IDEA = object<ChamberIdeaView>({
  ideaId: text,
  ticker: text,
  name: text,
  backers: integer,
  totalBps: integer,
  version: optional(integer),
  withdrawn: optional(flag),
  stances: optional(stances),
});

export const ALLOCATIONS = object<AllocationsView>({
  phase,
  committed: listOf(object<AllocationsView['committed'][number]>({ did: text, commitment: text })),
  revealed: listOf(object<AllocationsView['revealed'][number]>({ did: text, allocations, salt: text })),
});

export const OUTCOME = object<OutcomeView>({
  chamberId: integer,
  name: text,
  topic: nullable(text),
  createdBy: text,
  members: listOf(
    object<OutcomeMember>({ did: text, label: nullable(text), wallet: nullable(text), walletProven: nullable(flag) }),
  ),
  ideas: listOf(
    object<OutcomeIdea>({
      ideaId: text,
      ticker: text,
      name: text,
      proposer: text,
      backers: integer,
      totalBps: integer,
      shareBps: optional(integer),
      backersMissing: optional(integer),
      withdrawn: optional(flag),
      version: optional(integer),
      graduated: flag,
      tokenAddress: nullable(text),
      failure: nullable(text),
    }),
  ),
  quorate: optional(nullable(flag)),
  minBackersForGraduation: optional(integer),
  abstainedBps: integer,
  committed: integer,
  revealed: integer,
  merkleRoot: text,
  committedTxHash: text,
  endedAt: timestamp,
  lastEventId: integer,
});

export const MERKLE_PREVIEW = object({ root: text, eventCount: integer, asOfEventId: integer });
export const INCLUSION_PROOF = object({ leaf: text, proof: texts, root: text, eventCount: integer });
export const CONSISTENCY_PROOF = object({ fromRoot: text, toRoot: text, proof: texts });

const todo = object<TodoView>({
  chamberId: integer,
  name: text,
  phase,
  must: text,
  may: texts,
  turnHolder: nullable(text),
  phaseEndsAt: nullable(timestamp),
  turnEndsAt: nullable(timestamp),
});
export const TODO = object({ now: timestamp, todo: listOf(todo), more: flag, version: text });

export const ACCOUNT = object<AccountView>({ did: text, walletAddress: text, personality: ANY_OBJECT });
export const REGISTERED = object({ did: text, agentId: text });
export const CREATED = object({ chamberId: integer, phase, warnings: optional(texts) });
export const JOINED = object<MovePayloads['chamber.joined']>({ turnOrder: integer });

const evidence = object<RequestEvidence>({
  method: text,
  targetUri: text,
  body: nullable(text),
  contentDigest: text,
  signatureInput: text,
  signature: text,
});

const signed = { did: text, request: nullable(evidence) } as const;
const unsigned = { did: nullable(text), request: nullable(evidence) } as const;
const record = { eventId: integer, chamberId: nullable(integer), type: text, ts: timestamp, prev: text } as const;
/** A line of an account, or of a type that the client's folds do not know. */
const anyEvent = object({ ...record, ...unsigned, payload: ANY_OBJECT });

const transaction = { chainId: integer, nonce: integer, txHash: text, rawTransaction: text } as const;

/** The members of payloads that folds and narrations read, by event type. */
const payloads: Readonly<Partial<Record<keyof (MovePayloads & ServicePayloads), Shape>>> = {
  'chamber.created': object<MovePayloads['chamber.created']>({
    name: text,
    deadlines,
    minBackersForGraduation: integer,
    turnSeconds: nullable(integer),
    topic: optional(text),
    maxMembers: optional(integer),
    minMembers: optional(integer),
    rounds: optional(object<Rounds>({ proposal: integer, debate: integer })),
    movesPerTurn: optional(integer),
    admission: optional(admission),
  }),
  'chamber.admitted': object<MovePayloads['chamber.admitted']>({ did: text }),
  'chamber.joined': JOINED,
  'chamber.started': ANY_OBJECT,
  'chamber.proposed': object<MovePayloads['chamber.proposed']>({
    ideaId: text,
    slot: integer,
    name: text,
    ticker: text,
    description: text,
    creatorWallet: text,
  }),
  'chamber.debated': object<MovePayloads['chamber.debated']>({
    ideaId: nullable(text),
    comment: text,
    refinement: optional(nullable(ANY_OBJECT)),
    replyTo: optional(integer),
    stance: optional(oneOf(STANCES)),
    version: optional(integer),
  }),
  'chamber.amended': object<MovePayloads['chamber.amended']>({
    ideaId: text,
    version: integer,
    name: optional(text),
    description: optional(text),
  }),
  'chamber.withdrawn': object<MovePayloads['chamber.withdrawn']>({ ideaId: text }),
  'chamber.passed': object<MovePayloads['chamber.passed']>({ nextTurnAgent: text }),
  'allocation.committed': object<MovePayloads['allocation.committed']>({ commitment: text }),
  'allocation.revealed': object<MovePayloads['allocation.revealed']>({ allocations, salt: text }),
  'relay.commit_submitted': object<RelayTransaction>(transaction),
  'chamber.committed': object<ServicePayloads['chamber.committed']>({
    merkleRoot: text,
    eventCount: integer,
    txHash: text,
    blockNumber: integer,
    committedAt: timestamp,
  }),
  'relay.deploy_submitted': object<ServicePayloads['relay.deploy_submitted']>({
    ideaId: text,
    ...transaction,
    rawTransaction: optional(text),
  }),
  'idea.deployed': object<ServicePayloads['idea.deployed']>({
    ideaId: text,
    tokenAddress: text,
    txHash: text,
    graduatedAt: timestamp,
  }),
  'idea.deploy_failed': object<ServicePayloads['idea.deploy_failed']>({
    ideaId: text,
    txHash: nullable(text),
    reason: text,
  }),
};

const events: Readonly<Record<string, Shape>> = Object.fromEntries(
  Object.entries(payloads).map(([type, payload]) => {
    const author = isMove({ type } as ChamberEvent) ? signed : unsigned;
    return [type, object({ ...record, ...author, payload })] as const;
  }),
);

export const EVENT: Shape = (value, path) => {
  const { type } = (value ?? {}) as { readonly type?: unknown };
  const isKnown = typeof type === 'string' && Object.hasOwn(events, type);
  return ((isKnown && events[type]) || anyEvent)(value, path);
};
