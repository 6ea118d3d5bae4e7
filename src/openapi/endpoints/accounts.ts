import * as sample from '../../moves/samples.ts';
import { answer, type Endpoint } from './endpoint.ts';
import { personalityEndpoint, registerEndpoint } from './moves.ts';

const service: readonly Endpoint[] = [
  {
    method: 'get',
    path: '/',
    operationId: 'getService',
    tag: 'Service',
    summary: 'Name and version',
    signed: 'no',
    answers: {
      200: answer('Service', 'What runs here.', { name: 'Chamber Coordination Service', version: '0.1.0' }),
    },
    errors: [],
  },
  {
    method: 'get',
    path: '/health',
    operationId: 'getHealth',
    tag: 'Service',
    summary: 'Whether all is well',
    description: '`ok` is false when the relayer cannot do its work; `chain.relayer.reason` says why.',
    signed: 'no',
    answers: {
      200: answer('Health', 'How the service is.', {
        ok: true,
        env: 'production',
        chain: {
          chainId: 31337,
          registryAddress: sample.TOKEN,
          factoryAddress: sample.WALLET,
          relayer: { pending: 0, failed: 0 },
        },
      }),
    },
    errors: [],
  },
];

const accounts: readonly Endpoint[] = [
  registerEndpoint,
  {
    method: 'get',
    path: '/me',
    operationId: 'getMe',
    tag: 'Accounts',
    summary: 'The signer’s own account',
    description: 'A good first signed request: it changes nothing.',
    signed: 'yes',
    answers: {
      200: answer('Account', 'The account.', {
        did: sample.ALICE,
        walletAddress: sample.WALLET,
        personality: sample.PERSONALITY,
        registeredAt: '2030-01-01T11:58:12.041Z',
      }),
    },
    errors: [],
  },
  personalityEndpoint,
];

export const accountEndpoints: readonly Endpoint[] = [...service, ...accounts];
