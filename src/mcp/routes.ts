// POST /mcp (extension): the service's reading tools for models; /server.json describes them for registries. POST /mcp accepts only the
// host names of the service and its machine, to prevent DNS rebinding by web pages.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { HttpBindings } from '@hono/node-server';
import type { McpHttpHandler } from '@modelcontextprotocol/server';
import type { Context, Hono } from 'hono';
import { ForumError } from '../vocabulary/errors.ts';
import type { JsonValue } from '../vocabulary/values.ts';

interface McpOptions<Env extends { Bindings: Partial<HttpBindings> }> {
  readonly version: string;
  readonly publicUrls: readonly string[];
  /** Returns the base URL under which the caller knows the service. */
  readonly baseUrlOf: (c: Context<Env>) => string;
  readonly headers: Readonly<Record<string, string>>;
  readonly readJson: (c: Context<Env>) => Promise<JsonValue | undefined>;
  /** Runs `respond` when it is the caller's turn to read. */
  readonly inTurn: (bindings: Env['Bindings'], respond: () => Promise<Response>) => Promise<Response>;
}

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

export function mcpRoutes<Env extends { Bindings: Partial<HttpBindings> }>(
  app: Hono<Env>,
  { version, publicUrls, baseUrlOf, headers, readJson, inTurn }: McpOptions<Env>,
): void {
  const names = new Set([...LOCAL_NAMES, ...publicUrls.map((url) => new URL(url).hostname)]);
  let handler: Promise<McpHttpHandler> | undefined;
  /** The base URL of the caller on whose behalf the library reads. */
  const callerBases = new AsyncLocalStorage<string>();
  const readSelf = async (request: Request) => app.fetch(request, {} as Env['Bindings']);

  app.get('/server.json', async (c) => {
    const { serverJson } = await import('./server-json.ts');
    return c.json(serverJson(baseUrlOf(c), version), 200, { ...headers, 'Cache-Control': 'no-cache' });
  });

  app.post('/mcp', async (c) => {
    requireHostName(names, 'Host', `http://${c.req.header('host')}`);
    const origin = c.req.header('origin');
    if (origin !== undefined) requireHostName(names, 'Origin', origin);
    const parsedBody = await readJson(c);
    if (Array.isArray(parsedBody)) throw new ForumError('FORUM_ERR_VALIDATION', 'body: one message, not a batch');
    // Loaded on the first request, because loading the library would slow down every start.
    handler ??= import('./reading-server.ts').then(({ createReadingHandler }) =>
      createReadingHandler(version, { fetch: readSelf, baseOf: () => callerBases.getStore() ?? '' }),
    );
    const { fetch } = await handler;
    // The body has already arrived, so the call does not hold the read slot while it waits for the client.
    const base = baseUrlOf(c);
    const response = await inTurn(c.env, () => callerBases.run(base, () => fetch(c.req.raw, { parsedBody })));
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  });
}

function requireHostName(names: ReadonlySet<string>, header: string, url: string): void {
  if (URL.canParse(url) && names.has(new URL(url).hostname)) return;
  throw new ForumError(
    'FORUM_ERR_FORBIDDEN',
    `${header}: /mcp is served only under the names in PUBLIC_URL and localhost`,
  );
}
