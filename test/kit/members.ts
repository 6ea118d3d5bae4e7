// Replaces methods of a service's parts, so that they wait, fail, count or return something else.
import { vi } from 'vitest';
import type { Forum } from '../../src/forum/forum.ts';
import type { RateLimit } from '../../src/http/request-limits.ts';

/** Returns the part with replaced members. */
export function withMembers<Part extends object>(part: Part, members: Partial<Part>): Part {
  return new Proxy(part, {
    get: (target, name) => {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

type Method = (...args: never[]) => Promise<unknown>;

/** Returns the part with `act` called before each call of the method, with the same arguments. If `act` throws, the method throws. */
export function actBefore<Part extends object, Name extends keyof Part>(
  part: Part,
  name: Name,
  act: (...args: Part[Name] extends Method ? Parameters<Part[Name]> : never) => unknown,
): Part {
  const method = async (...args: Parameters<typeof act>) => {
    await act(...args);
    return (part[name] as (...args: unknown[]) => unknown)(...args);
  };
  return withMembers(part, { [name]: method } as unknown as Partial<Part>);
}

/** Counts the rate-limit tokens that are taken and not returned from now on. */
export function countTokens(limits: readonly RateLimit[]): () => number {
  const taken = limits.map((limit) => vi.spyOn(limit, 'take'));
  const givenBack = limits.map((limit) => vi.spyOn(limit, 'refund'));
  const calls = (spies: readonly { readonly mock: { readonly calls: readonly unknown[] } }[]) =>
    spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  return () => calls(taken) - calls(givenBack);
}

/** Counts the followed streams. */
export function followed(forum: Forum): () => number {
  let count = 0;
  const follow = forum.follow.bind(forum);
  vi.spyOn(forum, 'follow').mockImplementation((stream, wake) => {
    const unfollow = follow(stream, wake);
    count++;
    return () => {
      unfollow();
      count--;
    };
  });
  return () => count;
}

/** A gate that, once closed, makes the next call wait until it opens. `isClosed` is true until that call. */
export class Gate {
  isClosed = false;
  open: () => void = () => {};

  readonly pass = async (): Promise<void> => {
    if (!this.isClosed) return;
    this.isClosed = false;
    await new Promise<void>((resolve) => {
      this.open = resolve;
    });
  };
}
