// The requests with which a browser shows a chamber, on their own connection: the page, its files, its history, the list and the
// documents.
import { Agent as Connections } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { fetchOver } from './http.ts';

const DOCUMENTS = [
  '/',
  '/docs',
  '/openapi.json',
  '/agent-guide',
  '/llms.txt',
  '/health',
  '/chambers?limit=200',
  '/ideas',
];
/** The headers of a browser. */
const HEADERS = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'accept-encoding': 'gzip',
};
const LIST_TOOLS = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });

export async function loadPage(url: string, chamberId: number): Promise<void> {
  const connections = new Connections({ keepAlive: true, maxSockets: 2 });
  const fetch = fetchOver(connections);
  const get = async (path: string) => {
    const response = await fetch(url + path, { headers: HEADERS });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (!response.ok) throw new Error(`${path}: ${response.status} ${bytes}`);
    return bytes;
  };
  try {
    const page = gunzipSync(await get(`/chambers/${chamberId}`)).toString();
    const files = [...page.matchAll(/"(?:\.\.\/)?(assets\/[^"]+)"/g)].map(([, path]) => `/${path}`);
    const history = ['events', 'transcript', 'allocations', 'events/1/proof'].map(
      (path) => `/chambers/${chamberId}/${path}`,
    );
    await Promise.all([...files, ...history, DOCUMENTS[chamberId % DOCUMENTS.length] as string].map(get));
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const tools = await fetch(`${url}/mcp`, { method: 'POST', body: LIST_TOOLS, headers });
    if (!tools.ok) throw new Error(`/mcp: ${tools.status} ${await tools.text()}`);
    await tools.text();
  } finally {
    connections.destroy();
  }
}
