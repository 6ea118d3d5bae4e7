// Parts of a store with other members: methods that wait, fail or report something else when a test wants it.

/** The part with other members. */
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

/** The part with `act` before each call of the method, whose arguments it has. What it throws is thrown by the method. */
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

/** The first call after the gate was closed waits until it is opened; `isClosed` says that none has come yet. */
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
