// Strict base64 (RFC 4648, section 4) without Buffer, for Node and browsers: standard alphabet, canonical padding.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const NO_DIGIT = 0x40;
const DIGITS = new Uint8Array(128).fill(NO_DIGIT);
for (let digit = 0; digit < ALPHABET.length; digit++) DIGITS[ALPHABET.charCodeAt(digit)] = digit;

/** 86 digits and the padding. */
const SIGNATURE_CHARS = 88;
const PADDING = '==';

/** The 64 bytes of a signature, or undefined when the text is not their one canonical encoding. */
export function decodeSignature(text: string): Uint8Array | undefined {
  if (text.length !== SIGNATURE_CHARS || !text.endsWith(PADDING)) return undefined;
  const bytes = new Uint8Array(64);
  let seen = 0;
  let from = 0;
  for (let to = 0; to < 63; from += 4, to += 3) {
    const a = digitAt(text, from);
    const b = digitAt(text, from + 1);
    const c = digitAt(text, from + 2);
    const d = digitAt(text, from + 3);
    seen |= a | b | c | d;
    bytes[to] = (a << 2) | (b >> 4);
    bytes[to + 1] = (b << 4) | (c >> 2);
    bytes[to + 2] = (c << 6) | d;
  }
  // 64 bytes are 512 bits, 86 digits 516: the last digit ends in four zero bits, or two texts would mean the same bytes.
  const a = digitAt(text, from);
  const b = digitAt(text, from + 1);
  bytes[63] = (a << 2) | (b >> 4);
  const isCanonical = ((seen | a | b) & NO_DIGIT) === 0 && (b & 0x0f) === 0;
  return isCanonical ? bytes : undefined;
}

function digitAt(text: string, index: number): number {
  return DIGITS[text.charCodeAt(index)] ?? NO_DIGIT;
}
