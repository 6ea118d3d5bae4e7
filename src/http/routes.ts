import type { ForumApp } from './context.ts';

/** The methods that some route takes at that path: what a 405 names in Allow (RFC 9110, 15.5.6). */
export function allowedMethods(app: ForumApp, path: string): readonly string[] {
  const methods = app.routes
    .filter((route) => route.path !== '/*' && matches(route.path, path))
    .map(({ method }) => method);
  const withHead = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
  return withHead.length === 0 ? [] : [...new Set([...withHead, 'OPTIONS'])].sort();
}

function matches(pattern: string, path: string): boolean {
  const expected = pattern.split('/');
  const actual = path.split('/');
  return (
    expected.length === actual.length &&
    expected.every((part, at) => part === actual[at] || isParameter(part, actual[at]))
  );
}

function isParameter(part: string, value: string | undefined): boolean {
  return part.startsWith(':') && value !== '';
}
