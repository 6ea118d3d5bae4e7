// Serves pages at GET /, at GET /chambers/:id and for errors, where programs get JSON. The JSON response is always built first, because
// it determines status and headers.
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono, Next } from 'hono';
import type { Forum } from '../forum/forum.ts';
import { toHtml } from '../html/element.ts';
import { wantsHtml } from '../html/negotiate.ts';
import { type ResponseCache, SharedBody } from '../html/response-cache.ts';
import { acceptedEncoding } from '../vocabulary/accept.ts';
import { type ErrorBody, ForumError } from '../vocabulary/errors.ts';
import { parseId } from '../vocabulary/parameters.ts';
import { Assets } from './assets.ts';
import { chamberPages } from './chamber-pages.ts';
import { errorView, notFoundView, pageHtml, pagePolicy } from './document.ts';
import { listView } from './list-view.ts';

interface PageOptions {
  readonly forum: Forum;
  /** Sent with every response. */
  readonly headers: Readonly<Record<string, string>>;
  readonly responses: ResponseCache;
  /** Why the relayer can't work; undefined while it can. */
  readonly relayerProblem: () => string | undefined;
}

type App = Hono<{ Bindings: Partial<HttpBindings> }>;

const CHAMBERS_LISTED_MAX = 50;

/** Must be registered before the routes of the same paths. Returns the handler for requests that no route matches. */
export function pageRoutes(
  app: App,
  { forum, headers, responses, relayerProblem }: PageOptions,
): (c: Context, json: Response) => Promise<Response> {
  const assets = new Assets();
  const asset = assets.pathOf.bind(assets);
  const chamberPage = chamberPages(forum, asset, responses);

  app.get('/', (c, next) => negotiate(c, next, async () => new SharedBody(pageHtml(await listPage(c, forum, asset)))));
  app.get('/chambers/:id', (c, next) => negotiate(c, next, () => chamberPage(c.req.param('id'), relayerProblem())));
  app.get('/assets/:name', (c) => {
    const name = c.req.param('name');
    const security = { ...headers, ...SECURITY_HEADERS, 'Content-Security-Policy': pagePolicy(c.req.query('rpc')) };
    const response = assets.respond(name, c.req.header('accept-encoding') ?? '', security);
    if (response === undefined) throw new ForumError('FORUM_ERR_NOT_FOUND', `/assets/${name} not found`);
    return response;
  });

  async function negotiate(c: Context, next: Next, render: () => Promise<SharedBody>): Promise<void> {
    await next();
    const json = c.res;
    const response = await negotiatedResponse(c, json, () =>
      json.status === 200 ? render() : errorPage(c, json, asset),
    );
    if (response === json) return;
    // Without this, Hono would merge the two responses and copy their bodies.
    c.res = undefined;
    c.res = response;
  }

  return (c, json) => {
    const isRead = c.req.method === 'GET' || c.req.method === 'HEAD';
    return isRead ? negotiatedResponse(c, json, () => errorPage(c, json, asset)) : Promise.resolve(json);
  };

  async function negotiatedResponse(c: Context, json: Response, render: () => Promise<SharedBody>): Promise<Response> {
    json.headers.append('Vary', 'Accept');
    if (!wantsHtml(c.req.header('accept'))) return json;
    const page = await render();
    const isGzip = c.req.method !== 'HEAD' && acceptedEncoding(c.req.header('accept-encoding'), ['gzip']) !== undefined;
    const body = isGzip ? await page.encoded('gzip') : page.bytes;
    // Keeps the headers of the JSON response.
    const sent = new Headers(json.headers);
    for (const [name, value] of Object.entries(HTML_HEADERS)) sent.set(name, value);
    sent.set('Content-Security-Policy', pagePolicy(c.req.query('rpc')));
    sent.append('Vary', 'Accept-Encoding');
    if (isGzip) sent.set('Content-Encoding', 'gzip');
    return new Response(body, { status: json.status, headers: sent });
  }
}

const SECURITY_HEADERS = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' };
const HTML_HEADERS = {
  ...SECURITY_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-cache',
};

type PathOf = Assets['pathOf'];

async function listPage(c: Context, forum: Forum, asset: PathOf) {
  const before = parseId(c.req.query('before'));
  const chambers = await forum.chambers({ phase: undefined, limit: CHAMBERS_LISTED_MAX, before });
  const now = forum.now();
  const hasMore = chambers.length === CHAMBERS_LISTED_MAX;
  const view = toHtml(listView({ chambers, now, hasMore, isLive: false, search: '' }));
  const live = {
    tag: 'live-list',
    attributes: { 'data-now': now, 'data-before': before, 'data-limit': CHAMBERS_LISTED_MAX },
  };
  return { title: 'Chambers', base: './', view, live, asset } as const;
}

async function errorPage(c: Context, json: Response, asset: PathOf): Promise<SharedBody> {
  const { status } = json;
  const { detail } = (await json.clone().json()) as ErrorBody;
  const { path } = c.req;
  const base = baseOf(path);
  const id = c.req.param('id');
  const view = status === 404 ? notFoundView(base, id === undefined ? { path } : { id }) : errorView(status, detail);
  return new SharedBody(pageHtml({ title: status === 404 ? 'Not found' : 'Error', base, view: toHtml(view), asset }));
}

/** Returns the relative path from a page to the service's root. */
function baseOf(path: string): string {
  return '../'.repeat(path.split('/').length - 2) || './';
}
