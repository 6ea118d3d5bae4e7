import { CORS_HEADERS } from './response.ts';

const PREFLIGHT_HEADERS = {
  ...CORS_HEADERS,
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, OPTIONS',
  'Access-Control-Allow-Headers':
    'Content-Type, Content-Digest, Signature-Input, Signature, X-Dev-Did, Last-Event-ID, Accept',
  'Access-Control-Max-Age': '86400',
};

/** Specification, What the service does, 8: any origin may call, on every path. */
export function preflight(): Response {
  return new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
}
