// The documents that describe the service to programs, people and language models. Each is made when first asked for, and kept.
import type { Context } from 'hono';
import { LRUCache } from 'lru-cache';
import type { ForumApp } from '../context.ts';
import { CORS_HEADERS } from '../response.ts';
import { agentGuide } from './agent-guide.ts';
import { eventDocument } from './events.ts';
import { llmsText } from './llms.ts';
import { type DocumentOptions, openApiDocument } from './openapi.ts';
import { referencePage } from './page.ts';

/** The page runs nothing and loads nothing. */
const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
/** Without PUBLIC_URL the client's Host decides, which is anything. */
const BASE_URLS_KEPT_MAX = 8;

export function docsRoutes(app: ForumApp, options: DocumentOptions): void {
  const document = once(() => openApiDocument(options));
  const events = once(eventDocument);
  const openApiText = once(() => JSON.stringify(document()));
  const eventsText = once(() => JSON.stringify(events()));
  const page = once(() => referencePage(document(), events()));
  const llms = perBaseUrl(llmsText);
  const guide = perBaseUrl((baseUrl) => agentGuide(baseUrl, options.limits));

  app.get('/openapi.json', () => respond(openApiText(), 'application/json'));
  app.get('/schemas/events.json', () => respond(eventsText(), 'application/schema+json'));
  app.get('/docs', () => respond(page(), 'text/html', { 'Content-Security-Policy': PAGE_POLICY }));
  app.get('/llms.txt', (c) => respond(llms(baseUrlOf(c, options.publicUrls)), 'text/plain'));
  app.get('/agent-guide', (c) => respond(guide(baseUrlOf(c, options.publicUrls)), 'text/markdown'));
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function perBaseUrl(make: (baseUrl: string) => string): (baseUrl: string) => string {
  const made = new LRUCache<string, string>({ max: BASE_URLS_KEPT_MAX, memoMethod: make });
  return (baseUrl) => made.memo(baseUrl);
}

/** As the client knows the service: signatures must cover this address. */
function baseUrlOf(c: Context, publicUrls: readonly string[]): string {
  const host = c.req.header('host') ?? new URL(c.req.url).host;
  return publicUrls.find((url) => url.endsWith(`//${host}`)) ?? publicUrls[0] ?? `http://${host}`;
}

function respond(text: string, type: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(text, {
    headers: { ...CORS_HEADERS, 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache', ...headers },
  });
}
