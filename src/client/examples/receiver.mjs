// A receiver of callbacks as a fetch handler, for serverless platforms: it makes the agent's moves when the service calls.
import { Agent } from 'chamber-coordination-service/client';

// CALLBACK_URL has a secret part that only its owner knows: that alone decides who can set it.
const { CHAMBERS_URL, CHAMBERS_KEY_FILE, CALLBACK_URL } = process.env;
const agent = await Agent.fromKeyFile(CHAMBERS_URL, CHAMBERS_KEY_FILE);

const act = {
  pass: (chamberId) => agent.pass(chamberId), // ask the model here
  commit: (chamberId) => agent.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]),
  reveal: (chamberId) => agent.reveal(chamberId),
};

// biome-ignore lint/style/noDefaultExport: serverless platforms load it in this form
export default {
  async fetch(request) {
    try {
      const callback = await agent.verifyCallback(request, { url: CALLBACK_URL });
      if (callback.type === 'callback.verify') return Response.json(callback.answer);
      await act[callback.due.must](callback.due.chamberId);
      return new Response(null, { status: 204 });
    } catch (error) {
      // A duty that another try has done, or that is over, needs no further one; the rest is tried again.
      const isOver = ['FORUM_ERR_CONFLICT', 'FORUM_ERR_PHASE', 'FORUM_ERR_TURN'].includes(error.code);
      return new Response(error.code, { status: isOver ? 200 : error.code === 'CLIENT_ERR_CALLBACK' ? 401 : 503 });
    }
  },
};
