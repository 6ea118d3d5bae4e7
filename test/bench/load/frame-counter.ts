// Counts the text messages in a stream of unmasked WebSocket frames (RFC 6455, 5.2), however the stream is split into chunks.

const OPCODE = 0x0f;
const TEXT = 0x1;
const PING = 0x9;
const LENGTH = 0x7f;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const HEADER_BYTES_MAX = 10;

export class FrameCounter {
  readonly #onMessages: (count: number) => void;
  readonly #onPing: () => void;
  readonly #header = Buffer.alloc(HEADER_BYTES_MAX);
  #headerBytes = 0;
  #payloadLeft = 0;

  constructor(onMessages: (count: number) => void, onPing: () => void) {
    this.#onMessages = onMessages;
    this.#onPing = onPing;
  }

  push(bytes: Buffer): void {
    let messages = 0;
    for (let at = 0; at < bytes.length; ) {
      if (this.#payloadLeft === 0) {
        this.#header[this.#headerBytes++] = bytes[at++] as number;
        if (!this.#isHeaderWhole()) continue;
        this.#payloadLeft = this.#payloadLength();
      }
      const taken = Math.min(this.#payloadLeft, bytes.length - at);
      at += taken;
      this.#payloadLeft -= taken;
      if (this.#payloadLeft === 0) messages += this.#endFrame();
    }
    if (messages > 0) this.#onMessages(messages);
  }

  #isHeaderWhole(): boolean {
    if (this.#headerBytes < 2) return false;
    const length = (this.#header[1] as number) & LENGTH;
    return this.#headerBytes === (length === LENGTH_64 ? 10 : length === LENGTH_16 ? 4 : 2);
  }

  #payloadLength(): number {
    const length = (this.#header[1] as number) & LENGTH;
    if (length === LENGTH_64) return Number(this.#header.readBigUInt64BE(2));
    return length === LENGTH_16 ? this.#header.readUInt16BE(2) : length;
  }

  /** Returns the number of messages that the frame completes. */
  #endFrame(): number {
    this.#headerBytes = 0;
    const opcode = (this.#header[0] as number) & OPCODE;
    if (opcode === PING) this.#onPing();
    return opcode === TEXT ? 1 : 0;
  }
}
