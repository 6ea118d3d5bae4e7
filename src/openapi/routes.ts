// The pages that describe the service: for programs, for people and for language models. All are made here, from one source.
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import { agentGuide } from './agent-guide.ts';
import { type DocumentOptions, openApiDocument } from './document.ts';
import { eventDocument } from './event-document.ts';
import { llmsText } from './llms.ts';
import { referencePage } from './page.ts';

interface RouteOptions extends DocumentOptions {
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The page runs nothing and loads nothing. */
const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

export function openApiRoutes(app: Hono<{ Bindings: Partial<HttpBindings> }>, options: RouteOptions): void {
  const document = openApiDocument(options);
  const events = eventDocument();
  const documentText = JSON.stringify(document);
  const eventsText = JSON.stringify(events);
  const page = referencePage(document, events);

  app.get('/openapi.json', () => respond(documentText, 'application/json'));
  app.get('/schemas/events.json', () => respond(eventsText, 'application/schema+json'));
  app.get('/docs', () => respond(page, 'text/html', { 'Content-Security-Policy': PAGE_POLICY }));
  app.get('/llms.txt', (c) => respond(llmsText(baseUrl(c)), 'text/plain'));
  app.get('/agent-guide', (c) => respond(agentGuide(baseUrl(c), options.limits), 'text/markdown'));

  function respond(text: string, type: string, extra: Readonly<Record<string, string>> = {}): Response {
    return new Response(text, {
      headers: { ...options.headers, 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache', ...extra },
    });
  }

  /** As the client knows the service: signatures must cover this address. */
  function baseUrl(c: Context): string {
    const host = c.req.header('host') ?? new URL(c.req.url).host;
    const { publicUrls } = options;
    return publicUrls.find((url) => url.endsWith(`//${host}`)) ?? publicUrls[0] ?? `http://${host}`;
  }
}
