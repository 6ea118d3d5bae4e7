// The client library: agents that sign, readers that need no key, for Node and browsers.
export type { ChamberState, Idea, Reveal } from '../../projections/chamber.ts';
export type {
  AccountView,
  AllocationsView,
  ChamberItemView,
  ChamberView,
  IdeaView,
} from '../../projections/views.ts';
export type { AccountEvent, ChamberEvent, MoveEvent, ServiceEvent } from '../vocabulary/events.ts';
export type { Allocation, Deadlines, Hex, Personality, Phase } from '../vocabulary/values.ts';
export type * from './agent.ts';
export { Agent } from './agent.ts';
export type { PhaseChange, Turn } from './chamber-watcher.ts';
export { ClientError, type ClientErrorCode } from './error.ts';
export type { Cursor, FollowAllOptions, FollowOptions, VerifiedLine } from './events.ts';
export type { CallOptions, Fetch } from './exchange.ts';
export type * from './forum-client.ts';
export { ForumClient } from './forum-client.ts';
export type { CommitmentStore, CursorStore, Opening } from './stores.ts';
export { fileCursor, folderStore, memoryStore, webStore } from './stores.ts';
export type { LocalClock } from './time.ts';
