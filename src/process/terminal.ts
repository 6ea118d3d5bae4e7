// Text styles, and errors of standard output.
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Styles the text if standard output is a terminal and NO_COLOR is not set. */
export function paint(style: Style, text: string): string {
  const { NO_COLOR = '' } = process.env;
  const isWanted = process.stdout.isTTY === true && NO_COLOR === '';
  return isWanted ? styleText(style, text) : text;
}

/**
 * Ends the process when its output fails: silently if the reader (for example `head`) has closed the pipe, with an error message if the
 * disk is full.
 */
export function exitWithOutput(): void {
  process.stderr.on('error', () => {});
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') console.error(`failure: cannot write to standard output: ${message}`);
    process.exit(code === 'EPIPE' ? 0 : 1);
  });
}
