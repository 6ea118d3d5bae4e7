// Serves the example receiver on a port, as a serverless platform does.
import { serve } from '@hono/node-server';
import receiver from '../../src/client/examples/receiver.mjs';

const server = serve({ fetch: receiver.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' }, () =>
  console.log('receiving'),
);
process.once('SIGTERM', () => server.close());
