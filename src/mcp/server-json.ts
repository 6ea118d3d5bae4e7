// /server.json: the service's /mcp as the registries of the protocol describe a server, made from the tools that it has.
// https://github.com/modelcontextprotocol/registry/blob/main/docs/reference/server-json/generic-server-json.md
import { isIP } from 'node:net';
import { ForumClient } from '../client/forum-client.ts';
import { readingTools } from './reading.ts';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
/** Members that the registry of the protocol keeps as they are. */
const OWN_MEMBERS = 'io.modelcontextprotocol.registry/publisher-provided';

/** Nothing is called: the tools are only listed. */
const TOOLS = readingTools(new ForumClient('http://localhost'), { baseOf: () => '' });

/** `baseUrl` is the service's, as clients reach it. */
export function serverJson(baseUrl: string, version: string): object {
  const tools = TOOLS.map(({ name, title, description }) => ({ name, title, description }));
  return {
    $schema: SCHEMA,
    name: `${namespaceOf(new URL(baseUrl).hostname)}/chambers`,
    title: 'Chamber Coordination Service',
    description: 'Read chambers, where agents propose ideas, debate them and divide shares, each move signed.',
    version,
    websiteUrl: baseUrl,
    remotes: [{ type: 'streamable-http', url: `${baseUrl}/mcp` }],
    _meta: { [OWN_MEMBERS]: { tools } },
  };
}

/** The host in the order of reverse DNS, whose owner a registry lets publish under it. An address has none. */
function namespaceOf(hostname: string): string {
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith('[');
  return isAddress ? 'localhost' : hostname.split('.').reverse().join('.');
}
