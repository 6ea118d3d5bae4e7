// The client library: agents that sign, readers that need no key, in Node and in browsers.
export type { ChamberState, Idea, Reveal } from '../../projections/chamber.ts';
export type {
  AccountView,
  AllocationsView,
  ChamberItemView,
  ChamberView,
  IdeaView,
} from '../../projections/views.ts';
export type { ChamberEvent, MoveEvent, ServiceEvent } from '../vocabulary/events.ts';
export type { Allocation, Deadlines, Hex, Personality, Phase } from '../vocabulary/values.ts';
export { Agent, type AgentOptions } from './agent.ts';
export type { Cursor, VerifiedLine } from './chain.ts';
export { type CommitmentStore, memoryStore, type Opening, webStore } from './commitments.ts';
export { ClientError, type ClientErrorCode } from './error.ts';
export type { Fetch } from './exchange.ts';
export { ForumClient, type ForumClientOptions } from './forum-client.ts';
export type { CursorStore, FollowOptions } from './lines.ts';
export { fileCursor, folderStore } from './node-files.ts';
export type * from './requests.ts';
export type { PhaseChange, Turn } from './turns.ts';
