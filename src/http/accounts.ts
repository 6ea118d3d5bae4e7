// POST /register, GET /me, PUT /personality (specification, Endpoints, Accounts).
import { accountView } from '../../projections/views.ts';
import { changePersonality } from '../moves/change-personality.ts';
import { parseBody } from '../moves/move.ts';
import { register, registeredDid } from '../moves/register.ts';
import { requireFresh } from '../moves/rules.ts';
import type { Authenticator } from './authenticate.ts';
import type { ForumApp, ForumContext, HttpOptions } from './context.ts';
import { readBody } from './request.ts';
import { json } from './response.ts';

export function accountRoutes(app: ForumApp, auth: Authenticator, options: HttpOptions): void {
  const { forum, maxBodyBytes } = options;

  app.post('/register', async (c) => {
    const body = await readBody(c, maxBodyBytes);
    const signer = await auth.authenticateRegistration(c, body);
    const did = signer?.did ?? registeredDid(parseBody(register, body.json));
    const caller = signer ?? { did, request: null, signature: null, times: null };
    const event = await forum.submit({ operation: 'register', body: body.json, caller });
    if (event !== null) return json(register.answer(event as Parameters<typeof register.answer>[0]));
    const account = await forum.account(did);
    return json({ did, agentId: account?.state.agentId });
  });

  app.get('/me', async (c) => {
    const caller = await authenticateRead(c, auth, options);
    const account = await forum.account(caller.did);
    return json(account && accountView(account.state));
  });

  app.put('/personality', async (c) => {
    const body = await readBody(c, maxBodyBytes);
    const caller = await auth.authenticate(c, body);
    const event = await forum.submit({ operation: 'changePersonality', body: body.json, caller });
    return json(changePersonality.answer(event as Parameters<typeof changePersonality.answer>[0]));
  });
}

/** A signed read is not in the log, so it may repeat while it is fresh. */
async function authenticateRead(c: ForumContext, auth: Authenticator, { forum, maxBodyBytes }: HttpOptions) {
  const caller = await auth.authenticate(c, await readBody(c, maxBodyBytes));
  if (caller.times !== null) requireFresh(caller.times, forum.wallClock(), forum.ages);
  return caller;
}
