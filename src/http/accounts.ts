// POST /register, GET /me, PUT /personality (specification, Endpoints, Accounts).
import { accountView } from '../../projections/views.ts';
import { requireFresh } from '../decide/freshness.ts';
import { registeredDid } from '../decide/register.ts';
import { parseBody } from '../vocabulary/commands.ts';
import { accountAnswer } from './answers.ts';
import type { Authenticator } from './authenticate.ts';
import { readBody } from './body.ts';
import type { ForumApp, ForumContext, HttpOptions } from './context.ts';
import { json } from './response.ts';

export function accountRoutes(app: ForumApp, auth: Authenticator, options: HttpOptions): void {
  const { forum, maxBodyBytes } = options;

  app.post('/register', async (c) => {
    const body = await readBody(c, maxBodyBytes);
    const signer = await auth.authenticateRegistration(c, body);
    const did = signer?.did ?? registeredDid(parseBody('register', body.json));
    const event = await forum.register(body.json, signer ?? { did, request: null, signature: null, times: null });
    if (event !== null) return json(accountAnswer(event));
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
    return json(accountAnswer(await forum.changePersonality(body.json, caller)));
  });
}

/** A signed read is not in the log, so it may repeat while it is fresh. */
async function authenticateRead(c: ForumContext, auth: Authenticator, { forum, maxBodyBytes }: HttpOptions) {
  const caller = await auth.authenticate(c, await readBody(c, maxBodyBytes));
  if (caller.times !== null) requireFresh(caller.times, forum.wallClock(), forum.ages);
  return caller;
}
