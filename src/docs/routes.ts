// The documents that describe the service to programs, people and language models. Each is made on the first request, and cached.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { wantsHtml } from '../html/negotiate.ts';
import type { ForumApp } from '../http/context.ts';
import { baseUrlOf } from '../http/request.ts';
import { CORS_HEADERS } from '../http/response.ts';
import { agentGuide, llmsText, skillText } from './agent-texts.ts';
import { DOCUMENT_POLICY } from './document-page.ts';
import { eventDocument } from './events.ts';
import { guidePage } from './guide-page.ts';
import { type DocumentOptions, openApiDocument } from './openapi.ts';
import { referencePage } from './page.ts';

interface DocsOptions extends Omit<DocumentOptions, 'baseUrls'> {
  /** Empty: the address that the client used. */
  readonly publicUrls: readonly string[];
}

export function docsRoutes(app: ForumApp, options: DocsOptions): void {
  const events = once(eventDocument);
  const eventSchemas = once(() => described(JSON.stringify(events())));
  const document = forEachBaseUrl((baseUrl) => {
    const others = options.publicUrls.filter((url) => url !== baseUrl);
    return openApiDocument({ ...options, baseUrls: [baseUrl, ...others] });
  });
  const openApi = forEachBaseUrl((baseUrl) => described(JSON.stringify(document(baseUrl))));
  const reference = forEachBaseUrl((baseUrl) => described(referencePage(document(baseUrl), events())));
  const guide = forEachBaseUrl((baseUrl) => described(agentGuide(baseUrl, options.limits)));
  const guideAsPage = forEachBaseUrl((baseUrl) => described(guidePage(guide(baseUrl).bytes.toString())));
  const overview = forEachBaseUrl((baseUrl) => described(llmsText(baseUrl)));
  const skill = forEachBaseUrl((baseUrl) => described(skillText({ baseUrl })));

  app.get('/openapi.json', (c) => respond(openApi(baseUrlOf(c, options.publicUrls)), 'application/json'));
  app.get('/schemas/events.json', () => respond(eventSchemas(), 'application/schema+json'));
  app.get('/docs', (c) => respondPage(reference(baseUrlOf(c, options.publicUrls))));
  app.get('/agent-guide', (c) => {
    const baseUrl = baseUrlOf(c, options.publicUrls);
    const isBrowser = wantsHtml(c.req.header('accept'), 'text/markdown');
    const vary = { Vary: 'Accept' };
    return isBrowser ? respondPage(guideAsPage(baseUrl), vary) : respond(guide(baseUrl), 'text/markdown', vary);
  });
  app.get('/llms.txt', (c) => respond(overview(baseUrlOf(c, options.publicUrls)), 'text/plain'));
  app.get('/SKILL.md', (c) => respond(skill(baseUrlOf(c, options.publicUrls)), 'text/markdown'));
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
function forEachBaseUrl<Made extends object>(make: (baseUrl: string) => Made): (baseUrl: string) => Made {
  const kept = new LRUCache<string, Made>({ max: BASE_URLS_KEPT_MAX, memoMethod: make });
  return (baseUrl) => kept.memo(baseUrl);
}

function once<Made>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => (made ??= make());
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
