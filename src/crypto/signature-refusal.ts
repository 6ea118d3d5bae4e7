// Why a signed request is refused, and at which step: what service, auditor and client report in the same words.

/** The checks of a signature, in order. */
export type SignatureStep = 'form' | 'digest' | 'key' | 'verification' | 'registration' | 'age';

/** The message tells the signer what to mend. */
export class SignatureRefusal extends Error {
  readonly step: SignatureStep;

  constructor(step: SignatureStep, message: string) {
    super(message);
    this.name = 'SignatureRefusal';
    this.step = step;
  }
}
