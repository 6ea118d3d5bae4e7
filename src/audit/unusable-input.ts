// Input that can't be audited at all, as opposed to a log that is broken.

/** The message is one sentence's end, put after the name of the input: "FILE: it is empty". */
export class UnusableInput extends Error {
  override readonly name = 'UnusableInput';
}

/** The service or the chain could not be asked. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}
