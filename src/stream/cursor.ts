// Where a reader of a chamber's log starts: the chamber of the path and the cursor of the query, checked against this log.
import type { Context } from 'hono';
import { chamberNotFound } from '../forum/commands.ts';
import type { Forum } from '../forum/forum.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { invalid, parseCursor, parseId } from '../vocabulary/parameters.ts';

export interface Start {
  readonly chamberId: number;
  /** undefined where the reader names no cursor. */
  readonly after: number | undefined;
  readonly lastEventId: number;
}

/** Throws FORUM_ERR_NOT_FOUND, FORUM_ERR_CONFLICT (another log) or FORUM_ERR_VALIDATION (no cursor of this log). */
export async function readStart(c: Context, forum: Forum, lastEventIdHeader?: string): Promise<Start> {
  const chamberId = parseId(c.req.param('id'));
  const chamber = chamberId === undefined ? undefined : await forum.chamber(chamberId);
  if (chamberId === undefined || chamber === undefined) throw chamberNotFound();
  requireLog(c.req.query('log'), forum.log.logId);
  const { lastEventId } = chamber.state;
  const after = readAfter(c, lastEventIdHeader);
  if (after !== undefined && after > lastEventId) {
    throw invalid('after', `${after} lies beyond the head of the log, which is ${lastEventId}`);
  }
  return { chamberId, after, lastEventId };
}

function readAfter(c: Context, lastEventId: string | undefined): number | undefined {
  if (lastEventId !== undefined) return parseCursor('Last-Event-ID', lastEventId);
  return parseCursor('after', c.req.query('after'));
}

function requireLog(expected: string | undefined, actual: string): void {
  if (expected === undefined || expected === actual) return;
  throw new ForumError('FORUM_ERR_CONFLICT', `log: the cursor is of another log; this one is ${actual}`);
}
