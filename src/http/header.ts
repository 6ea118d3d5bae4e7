import type { ForumContext } from './context.ts';

/**
 * A request header by its lower-case name; several lines of one come joined by ", ". Node's own table is read where
 * there is one: hono's view of it checks and copies on every look.
 */
export function header(c: ForumContext, name: string): string | undefined {
  const { incoming } = c.env;
  if (incoming === undefined) return c.req.header(name);
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
