// The client library: signing agents, readers without a key, folds of events, and verification of proofs.
export { type ChamberState, evolveChamber, type Reveal } from '../../projections/chamber.ts';
export type { Idea } from '../../projections/ideas.ts';
export { type Outcome, type OutcomeIdea, type OutcomeView, outcomeOf, outcomeText } from '../../projections/outcome.ts';
export { phaseAt } from '../../projections/phase.ts';
export type { May, Must, TodoView } from '../../projections/todo.ts';
export { turnHolderAt } from '../../projections/turn.ts';
export {
  type AccountView,
  type AllocationsView,
  allocationsView,
  type ChamberItemView,
  type ChamberView,
  chamberView,
  type IdeaView,
  ideaViews,
} from '../../projections/views.ts';
export { commitmentHash, type Opening } from '../crypto/commitment.ts';
export { verifyConsistency, verifyInclusion } from '../crypto/merkle-proof.ts';
export type { KeptReceipt, Receipt } from '../crypto/receipt.ts';
export { lineLeaf as leafHash } from '../crypto/stub.ts';
export { READ_LIMITS, type ReadLimits } from '../reading/limits.ts';
export type { Fetch } from '../reading/response.ts';
export type { AccountEvent, ChamberEvent, MoveEvent, ServiceEvent } from '../vocabulary/events.ts';
export {
  type Allocation,
  type Deadlines,
  fromHex,
  type Hex,
  type Personality,
  type Phase,
  toHex,
} from '../vocabulary/values.ts';
export type * from './agent.ts';
export { Agent } from './agent.ts';
export type { Binding, StoredOpening } from './binding.ts';
export type { CallOptions, Retry, SendOptions, SignedRequest } from './call.ts';
export type * from './callback-types.ts';
export type { CallbackOptions, CallbackRequest } from './callbacks.ts';
export type { PhaseChange, Turn } from './chamber-watcher.ts';
export type { OnDue } from './duties.ts';
export type { WatchOptions } from './duty-watch.ts';
export { ClientError, type ClientErrorCode } from './error.ts';
export type { Cursor, CursorStore, FollowAllOptions, FollowOptions, VerifiedLine } from './events.ts';
export type * from './forum-client.ts';
export { ForumClient } from './forum-client.ts';
export type { CommitmentStore, ReceiptPlace, ReceiptStore } from './stores.ts';
export { fileCursor, folderReceipts, folderStore, memoryReceipts, memoryStore, webStore } from './stores.ts';
export type { LocalClock } from './time.ts';
export type { WalletSigner } from './wallet.ts';
export { type Duty, type RevealProblem, reportText, type WatchReport } from './watch-report.ts';
