// Strict base64 (RFC 4648, section 4) without Buffer, for Node and browsers: standard alphabet, canonical padding.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const DIGITS = new Uint8Array(128);
for (let digit = 0; digit < ALPHABET.length; digit++) DIGITS[ALPHABET.charCodeAt(digit)] = digit;

// 64 bytes are 512 bits, 86 digits 516: the last digit ends in four zero bits, or two texts would mean the same bytes.
const SIGNATURE = /^[A-Za-z0-9+/]{85}[AQgw]==$/;

/** The 64 bytes of a signature, or undefined when the text is not their one canonical encoding. */
export function decodeSignature(text: string): Uint8Array | undefined {
  if (!SIGNATURE.test(text)) return undefined;
  // The padding stands for two bytes more, whose writes past the end are dropped.
  const bytes = new Uint8Array(64);
  for (let from = 0, to = 0; from < text.length; from += 4, to += 3) {
    const group =
      (digitAt(text, from) << 18) |
      (digitAt(text, from + 1) << 12) |
      (digitAt(text, from + 2) << 6) |
      digitAt(text, from + 3);
    bytes[to] = group >> 16;
    bytes[to + 1] = group >> 8;
    bytes[to + 2] = group;
  }
  return bytes;
}

/** Padding counts as zero. */
function digitAt(text: string, index: number): number {
  return DIGITS[text.charCodeAt(index)] as number;
}
