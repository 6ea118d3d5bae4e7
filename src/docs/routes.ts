// The documents that describe the service to programs, people and language models. Each is made on the first request, and cached.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { wantsHtml } from '../html/negotiate.ts';
import type { ForumApp, ForumContext } from '../http/context.ts';
import { CORS_HEADERS } from '../http/response.ts';
import { agentGuide, llmsText, skillText } from './agent-texts.ts';
import { DOCUMENT_POLICY } from './document-page.ts';
import { eventDocument } from './events.ts';
import { guidePage } from './guide-page.ts';
import { type DocumentOptions, openApiDocument } from './openapi.ts';
import { referencePage } from './page.ts';

export function docsRoutes(app: ForumApp, options: DocumentOptions): void {
  let made: ReturnType<typeof makeReference> | undefined;
  const reference = () => (made ??= makeReference(options));
  const guide = forEachBaseUrl((baseUrl) => agentGuide(baseUrl, options.limits));
  const guideAsPage = forEachBaseUrl((baseUrl) => guidePage(guide(baseUrl).bytes.toString()));
  const overview = forEachBaseUrl(llmsText);
  const skill = forEachBaseUrl((baseUrl) => skillText({ baseUrl }));

  app.get('/openapi.json', () => respond(reference().openApi, 'application/json'));
  app.get('/schemas/events.json', () => respond(reference().events, 'application/schema+json'));
  app.get('/docs', () => respondPage(reference().page));
  app.get('/agent-guide', (c) => {
    const baseUrl = baseUrlOf(c, options);
    const isBrowser = wantsHtml(c.req.header('accept'), 'text/markdown');
    const vary = { Vary: 'Accept' };
    return isBrowser ? respondPage(guideAsPage(baseUrl), vary) : respond(guide(baseUrl), 'text/markdown', vary);
  });
  app.get('/llms.txt', (c) => respond(overview(baseUrlOf(c, options)), 'text/plain'));
  app.get('/SKILL.md', (c) => respond(skill(baseUrlOf(c, options)), 'text/markdown'));
}

/** A document, whose bytes all its responses share, with the tag that stands for them. */
interface Described {
  readonly bytes: Buffer<ArrayBuffer>;
  readonly etag: string;
}

function described(text: string): Described {
  return { bytes: Buffer.from(text), etag: `W/"${hash('sha256', text, 'base64url')}"` };
}

/** The base URL without PUBLIC_URL is the client's Host, which may be anything. */
const BASE_URLS_KEPT_MAX = 8;

/** A document that names the base URL: made once for each, of which the latest are kept. */
function forEachBaseUrl(textOf: (baseUrl: string) => string): (baseUrl: string) => Described {
  const memoMethod = (baseUrl: string) => described(textOf(baseUrl));
  const kept = new LRUCache<string, Described>({ max: BASE_URLS_KEPT_MAX, memoMethod });
  return (baseUrl) => kept.memo(baseUrl);
}

function makeReference(options: DocumentOptions) {
  const document = openApiDocument(options);
  const events = eventDocument();
  const page = referencePage(document, events);
  return {
    openApi: described(JSON.stringify(document)),
    events: described(JSON.stringify(events)),
    page: described(page),
  };
}

/** The address as the client knows the service: signatures must cover it. */
export function baseUrlOf(c: ForumContext, { publicUrls }: Pick<DocumentOptions, 'publicUrls'>): string {
  const host = c.req.header('host') ?? new URL(c.req.url).host;
  return publicUrls.find((url) => url.endsWith(`//${host}`)) ?? publicUrls[0] ?? `http://${host}`;
}

function respondPage(page: Described, headers: Readonly<Record<string, string>> = {}): Response {
  return respond(page, 'text/html', { 'Content-Security-Policy': DOCUMENT_POLICY, ...headers });
}

function respond({ bytes, etag }: Described, type: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(bytes, {
    headers: {
      ...CORS_HEADERS,
      'Content-Type': `${type}; charset=utf-8`,
      'Cache-Control': 'no-cache',
      ETag: etag,
      ...headers,
    },
  });
}
