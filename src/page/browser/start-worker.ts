// Starts a worker under Trusted Types: only a script of the service itself.

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

// Not in the type library yet, nor in every browser.
const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
const policy = trustedTypes?.createPolicy('page', { createScriptURL: ownScript });

export function startWorker(path: string): Worker {
  const { href } = new URL(path, location.href);
  return new Worker(policy?.createScriptURL(href) ?? ownScript(href), { type: 'module' });
}

function ownScript(url: string): string {
  if (new URL(url).origin !== location.origin) throw new TypeError('not a script of this service');
  return url;
}
