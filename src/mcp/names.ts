// Short names of agents, remaining seconds and links, for models.
import type { ChamberView } from '../../projections/views.ts';
import { instantOf } from '../vocabulary/values.ts';

/** Returns A1, A2 … in turn order, as in the transcript; `creator` for an agent that is not a member. */
export function aliasOf({ members }: Pick<ChamberView, 'members'>, did: string): string {
  const turn = members.indexOf(did);
  return turn === -1 ? 'creator' : `A${turn + 1}`;
}

const DID = /did:key:z[1-9A-HJ-NP-Za-km-z]+/g;

/** Replaces the DIDs in a text from the service with the transcript's aliases, and marks the reader's own. */
export function withAliases(text: string, chamber: Pick<ChamberView, 'members'>, own: string): string {
  return text.replace(DID, (did) => `${aliasOf(chamber, did)}${did === own ? ' (you)' : ''}`);
}

interface Timed {
  readonly now: string;
  readonly phaseEndsAt: string | null;
  readonly turnEndsAt: string | null;
}

/** Returns the seconds until the turn or the phase ends; null once the chamber is over. */
export function secondsLeft({ now, phaseEndsAt, turnEndsAt }: Timed): number | null {
  const end = turnEndsAt ?? phaseEndsAt;
  return end === null ? null : Math.max(0, Math.floor((instantOf(end) - instantOf(now)) / 1_000));
}

export function linksOf(base: string, chamberId: number) {
  const page = `${base}/chambers/${chamberId}`;
  return { page, lines: `${page}/events` };
}
