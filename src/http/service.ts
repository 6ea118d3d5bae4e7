// GET / and GET /health (specification, Endpoints, Service).
import type { ForumApp, HttpOptions } from './context.ts';
import { json } from './response.ts';

export const SERVICE_NAME = 'Chamber Coordination Service';

/** Where programs, people and language models read on (RFC 8288, RFC 8631). */
const DESCRIPTIONS =
  '<openapi.json>; rel="service-desc", <docs>; rel="service-doc", <llms.txt>; rel="describedby", <agent-guide>; rel="help"';

export function serviceRoutes(app: ForumApp, { version, env, chainStatus }: HttpOptions): void {
  app.get('/', () => json({ name: SERVICE_NAME, version }, { Link: DESCRIPTIONS }));
  app.get('/health', () => {
    const { ok, details } = chainStatus();
    return json({ ok, env, ...details });
  });
}
