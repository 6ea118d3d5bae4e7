// The pages for people at GET / and GET /chambers/:id, where programs get JSON. The JSON response is always made first: it
// determines status and headers, and a browser sees the same as a page.
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono, Next } from 'hono';
import type { Forum } from '../forum/forum.ts';
import { readPages } from '../log/pages.ts';
import { type ErrorBody, ForumError } from '../vocabulary/errors.ts';
import { type ChamberEvent, fromLine } from '../vocabulary/events.ts';
import { Assets } from './assets.ts';
import { chamberView } from './chamber-view.ts';
import { errorView, pageHtml, pagePolicy } from './document.ts';
import { listView } from './list-view.ts';
import { wantsHtml } from './negotiate.ts';

interface PageOptions {
  readonly forum: Forum;
  /** Sent with every response. */
  readonly headers: Readonly<Record<string, string>>;
  /** Why the relayer can't work now; undefined while it can. */
  readonly relayerProblem: () => string | undefined;
}

type App = Hono<{ Bindings: Partial<HttpBindings> }>;

const CHAMBERS_LISTED_MAX = 50;
/** In the transcript for a browser without scripts; a script reads the whole log. */
const EVENTS_RENDERED_MAX = 100;

/** Must be registered before the routes of the same paths. */
export function pageRoutes(app: App, { forum, headers, relayerProblem }: PageOptions): void {
  const assets = new Assets();
  const asset = assets.pathOf.bind(assets);

  app.get('/', (c, next) => negotiate(c, next, async () => pageHtml(await listPage(c, forum, asset))));
  app.get('/chambers/:id', (c, next) =>
    negotiate(c, next, async () => pageHtml({ ...(await chamberPage(c, forum, relayerProblem())), asset })),
  );
  app.get('/assets/:name', (c) => {
    const name = c.req.param('name');
    const security = { ...headers, ...SECURITY_HEADERS, 'Content-Security-Policy': pagePolicy(c.req.query('rpc')) };
    const response = assets.respond(name, c.req.header('accept-encoding') ?? '', security);
    if (response === undefined) throw new ForumError('FORUM_ERR_NOT_FOUND', `/assets/${name} not found`);
    return response;
  });

  async function negotiate(c: Context, next: Next, render: () => Promise<string>): Promise<void> {
    await next();
    c.res.headers.append('Vary', 'Accept');
    if (!wantsHtml(c.req.header('accept'))) return;
    const { status } = c.res;
    // Headers of the JSON response stay in force.
    c.res = new Response(status === 200 ? await render() : await errorPage(c, asset), {
      status,
      headers: { ...HTML_HEADERS, 'Content-Security-Policy': pagePolicy(c.req.query('rpc')) },
    });
  }
}

const SECURITY_HEADERS = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' };
const HTML_HEADERS = {
  ...SECURITY_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-cache',
};

type PathOf = Assets['pathOf'];
const ID = /^[1-9]\d{0,14}$/;

async function listPage(c: Context, forum: Forum, asset: PathOf) {
  const asked = c.req.query('before') ?? '';
  const before = ID.test(asked) ? Number(asked) : undefined;
  const chambers = await forum.chambers({ phase: undefined, limit: CHAMBERS_LISTED_MAX, before });
  const now = forum.now();
  const hasMore = chambers.length === CHAMBERS_LISTED_MAX;
  const view = listView({ chambers, now, hasMore, isLive: false, search: '' });
  const live = {
    tag: 'live-list',
    attributes: { 'data-now': now, 'data-before': before, 'data-limit': CHAMBERS_LISTED_MAX },
  };
  return { title: 'Chambers', base: './', view, live, asset } as const;
}

async function chamberPage(c: Context, forum: Forum, relayerProblem: string | undefined) {
  const { state } = await forum.findChamber(c.req.param('id'));
  const { chamberId, lastEventId, name } = state;
  const events: ChamberEvent[] = [];
  const after = Math.max(0, lastEventId - EVENTS_RENDERED_MAX);
  for await (const page of readPages(forum.store.log, {
    stream: chamberId,
    after,
    until: lastEventId,
    lane: 'foreground',
  })) {
    const lines = Buffer.from(page.ndjson).toString().trimEnd().split('\n');
    // The stream of a chamber holds nothing else.
    events.push(...lines.map((line) => fromLine(line) as ChamberEvent));
  }
  const now = forum.now();
  const labels = await labelsOf(forum, [state.creatorDid, ...state.members]);
  const view = chamberView({ state, events, now, labels, relayerProblem });
  const live = {
    tag: 'live-chamber',
    attributes: {
      'data-chamber': chamberId,
      'data-now': now,
      'data-events': lastEventId,
      'data-labels': JSON.stringify([...labels]),
      'data-problem': relayerProblem,
    },
  };
  return { title: `${name} · Chamber ${chamberId}`, base: '../', view, live } as const;
}

/** What the agents call themselves, by DID. */
async function labelsOf(forum: Forum, dids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const accounts = await Promise.all(dids.map((did) => forum.account(did)));
  return new Map(accounts.flatMap((each) => (each?.state.label ? [[each.state.did, each.state.label]] : [])));
}

async function errorPage(c: Context, asset: PathOf): Promise<string> {
  const { detail } = (await c.res.json()) as ErrorBody;
  const base = c.req.path === '/' ? './' : '../';
  return pageHtml({ title: 'Error', base, view: errorView(c.res.status, detail), asset });
}
