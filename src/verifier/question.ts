// One signature to verify and the way its answer goes back.

export interface Question {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
  readonly resolve: (isValid: boolean) => void;
  readonly reject: (reason: unknown) => void;
}
