// Serves the documents that describe the service to programs, people and language models.
import { wantsHtml } from '../html/negotiate.ts';
import type { ResponseCache, SharedBody } from '../html/response-cache.ts';
import { respondDocument } from '../http/compression.ts';
import type { ForumApp, ForumContext } from '../http/context.ts';
import { baseUrlOf } from '../http/request.ts';
import { CORS_HEADERS } from '../http/response.ts';
import { agentGuide, llmsText, skillText } from './agent-texts.ts';
import { DOCUMENT_POLICY, guidePage } from './document-page.ts';
import { eventDocument } from './events.ts';
import { type DocumentOptions, openApiDocument } from './openapi.ts';
import { referencePage } from './page.ts';

interface DocsOptions extends Omit<DocumentOptions, 'baseUrls'> {
  /** If empty, documents contain the address that the client used. */
  readonly publicUrls: readonly string[];
  readonly responses: ResponseCache;
}

export function docsRoutes(app: ForumApp, { publicUrls, responses, ...options }: DocsOptions): void {
  const openApi = (baseUrl: string) => {
    const others = publicUrls.filter((url) => url !== baseUrl);
    return openApiDocument({ ...options, baseUrls: [baseUrl, ...others] });
  };
  const guide = (baseUrl: string) => agentGuide(baseUrl, options.limits);
  /** Builds each document once per base URL. */
  const body = (c: ForumContext, name: string, make: (baseUrl: string) => string) => {
    const baseUrl = baseUrlOf(c, publicUrls);
    return responses.open().body(['document', name, baseUrl], () => make(baseUrl));
  };

  app.get('/openapi.json', async (c) => {
    const document = await body(c, 'openapi', (baseUrl) => JSON.stringify(openApi(baseUrl)));
    return respond(c, document, 'application/json');
  });
  app.get('/schemas/events.json', async (c) => {
    return respond(c, await body(c, 'events', () => JSON.stringify(eventDocument())), 'application/schema+json');
  });
  app.get('/docs', async (c) => {
    return respondPage(c, await body(c, 'docs', (baseUrl) => referencePage(openApi(baseUrl), eventDocument())));
  });
  app.get('/agent-guide', async (c) => {
    const vary = { Vary: 'Accept' };
    if (!wantsHtml(c.req.header('accept'), 'text/markdown')) {
      return respond(c, await body(c, 'guide', guide), 'text/markdown', vary);
    }
    return respondPage(c, await body(c, 'guide page', (baseUrl) => guidePage(guide(baseUrl))), vary);
  });
  app.get('/llms.txt', async (c) => respond(c, await body(c, 'llms', llmsText), 'text/plain'));
  app.get('/SKILL.md', async (c) => {
    return respond(c, await body(c, 'skill', (baseUrl) => skillText({ baseUrl })), 'text/markdown');
  });
}

type Headers = Readonly<Record<string, string>>;

function respondPage(c: ForumContext, page: SharedBody, headers: Headers = {}): Promise<Response> {
  return respond(c, page, 'text/html', { 'Content-Security-Policy': DOCUMENT_POLICY, ...headers });
}

function respond(c: ForumContext, body: SharedBody, type: string, headers: Headers = {}): Promise<Response> {
  const own = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' };
  return respondDocument(c, { body, headers: { ...CORS_HEADERS, ...own, ...headers } });
}
