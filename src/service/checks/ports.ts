// Checks the ports by listening on them briefly.
import { createServer, type Server } from 'node:net';
import { type ListenAddress, ListenError, listen } from '../../http/http-server.ts';
import { EXIT_FAILURE } from '../../process/exit.ts';
import { metricsPort, servicePort } from '../configured.ts';
import type { Check } from './check.ts';
import { type Finding, ok, problem } from './finding.ts';

export const checkPorts: Check = async ({ config, isRunning }) => {
  if (isRunning) return [];
  const metrics = metricsPort(config);
  const servers: Server[] = [];
  const findings: Finding[] = [];
  for (const address of [...(metrics === undefined ? [] : [metrics]), servicePort(config)]) {
    const server = createServer((socket) => socket.destroy());
    const finding = await tryPort(server, address);
    findings.push(finding);
    if (finding.level === 'ok') servers.push(server);
  }
  // The first server stays open while the second is tried, because they can't share a port.
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return findings;
};

async function tryPort(server: Server, address: ListenAddress): Promise<Finding> {
  const { port, host, variables } = address;
  // The system picks a free port for port 0.
  try {
    await listen(server, address);
    return ok('ports', port === 0 ? `a free port of ${host}` : `${host}:${port} is free`, variables.port);
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    return problem('ports', error.message, { variable: error.variable, exitCode: EXIT_FAILURE });
  }
}
