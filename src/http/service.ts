// GET / and GET /health (specification, Endpoints, Service).
import type { ForumApp, HttpOptions } from './context.ts';
import { json } from './response.ts';

export const SERVICE_NAME = 'Chamber Coordination Service';

export function serviceRoutes(app: ForumApp, { version, env, chainStatus }: HttpOptions): void {
  app.get('/', () => json({ name: SERVICE_NAME, version }));
  app.get('/health', () => {
    const { ok, details } = chainStatus();
    return json({ ok, env, ...details });
  });
}
