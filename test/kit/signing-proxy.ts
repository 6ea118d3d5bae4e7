// A proxy that adds its own signature to forwarded requests, as gateways and agent platforms do (RFC 9421, 4.3). The proxy shares
// no code with src.
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from './temporary.ts';

export interface SigningProxy {
  readonly url: string;
  /** The signature headers of the forwarded requests. */
  readonly forwarded: { readonly method: string; readonly path: string; readonly signatureInput: string }[];
  /** Sets the service behind the proxy. */
  forwardTo(url: string): void;
}

/**
 * Opens a proxy; its signature is in separate header lines with `hasOwnLine`, and otherwise follows the client's in the same
 * line.
 */
export async function openSigningProxy({ hasOwnLine = false } = {}): Promise<SigningProxy> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const forwarded: { method: string; path: string; signatureInput: string }[] = [];
  let target = '';
  const server = createServer((incoming, outgoing) => {
    const { method = '', url: path = '' } = incoming;
    const { params, signature } = signed(incoming);
    const own = { 'signature-input': `proxy=${params}`, signature: `proxy=:${signature}:` };
    const { hostname, port } = new URL(target);
    const headers: Record<string, string | string[] | undefined> = { ...incoming.headers };
    for (const [name, value] of Object.entries(own)) {
      const sent = incoming.headers[name];
      headers[name] = sent === undefined ? value : hasOwnLine ? [String(sent), value] : `${sent}, ${value}`;
    }
    forwarded.push({ method, path, signatureInput: [headers['signature-input']].flat().join(', ') });
    const onward = request({ hostname, port, method, path, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });

  /** Signs the method, the host and the client's signature. */
  function signed({ method, headers }: IncomingMessage) {
    const covered = ['"@method"', '"@authority"'];
    const lines = [`"@method": ${method}`, `"@authority": ${headers.host}`];
    const client = /sig1=(:[^:]*:)/.exec(String(headers['signature'] ?? ''))?.[1];
    if (client !== undefined) {
      covered.push('"signature";key="sig1"');
      lines.push(`"signature";key="sig1": ${client}`);
    }
    const keyid = createHash('sha256').update('proxy, inc.').digest('base64url');
    const params = `(${covered.join(' ')});created=${Math.floor(Date.now() / 1000)};keyid="${keyid}, inc.";tag="forwarded"`;
    const base = `${lines.join('\n')}\n"@signature-params": ${params}`;
    return { params, signature: sign(null, Buffer.from(base), privateKey).toString('base64') };
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => void server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const forwardTo = (service: string) => {
    target = service;
  };
  return { url, forwarded, forwardTo };
}
