// The third-party programs that `npm run judges` installs: names, versions and locations.
import { join } from 'node:path';

/** The npm packages of each judge; `npm ci` does not install them, because they are many. */
export const PACKAGES = {
  prism: { '@stoplight/prism-cli': '5.14.2' },
  spectral: { '@stoplight/spectral-cli': '6.16.3', '@stoplight/spectral-owasp-ruleset': '2.0.1' },
  conformance: { '@modelcontextprotocol/conformance': '0.2.0-alpha.12' },
  tlog: {},
  neighbours: {
    '@ai-sdk/mcp': '2.0.99',
    '@hey-api/openapi-ts': '0.99.0',
    '@langchain/core': '1.4.0',
    '@langchain/mcp-adapters': '1.1.4',
    '@microsoft/fetch-event-source': '2.0.1',
    '@modelcontextprotocol/inspector': '2.12.0',
    '@modelcontextprotocol/sdk': '1.32.2',
    '@openzeppelin/merkle-tree': '1.0.8',
    '@zodios/core': '10.9.6',
    ajv: '8.20.0',
    'ajv-formats': '3.0.1',
    ethers: '6.17.0',
    eventsource: '5.1.5',
    'eventsource-client': '1.2.0',
    'http-message-sig': '0.3.0',
    'http-message-signatures': '1.0.6',
    'mcp-remote': '0.15.1',
    'openapi-fetch': '0.17.0',
    'openapi-typescript': '7.13.0',
    'openapi-zod-client': '1.18.3',
    partysocket: '1.3.0',
    'reconnecting-websocket': '4.4.0',
    typescript: '5.9.3',
    'web-bot-auth': '0.1.3',
    ws: '8.18.3',
    zod: '3.25.76',
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

export type Judge = keyof typeof PACKAGES;

/** The parent of the judges' folders; undefined in all other test runs. */
export const { JUDGES } = process.env;

/** Returns the command that starts a program of this name with the tests' Node, not the Node that its first line would find. */
export function judge(program: 'conformance' | 'prism' | 'spectral'): readonly [string, string] {
  return [process.execPath, join(judgeFolder(program), 'node_modules/.bin', program)];
}

export function judgeFolder(name: Judge): string {
  if (JUDGES === undefined) throw new Error('start with `npm run judges`');
  return join(JUDGES, name);
}
