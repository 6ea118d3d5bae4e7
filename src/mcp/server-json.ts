// /server.json, generated from the tools, describes the service's /mcp for MCP registries.
// https://github.com/modelcontextprotocol/registry/blob/main/docs/reference/server-json/generic-server-json.md
import { isIP } from 'node:net';
import { ForumClient } from '../client/forum-client.ts';
import { readingTools } from './reading.ts';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
/** Registries store this member unchanged. */
const OWN_MEMBERS = 'io.modelcontextprotocol.registry/publisher-provided';

/** The tools are only listed, never called. */
const TOOLS = readingTools(new ForumClient('http://localhost'), { baseOf: () => '' });

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

/** Returns the host name in reverse-DNS order, under which a registry lets the owner of the host publish; `localhost` for an IP address. */
function namespaceOf(hostname: string): string {
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith('[');
  return isAddress ? 'localhost' : hostname.split('.').reverse().join('.');
}
