// Text for people: colours where they are wanted, and nothing in other people's words that a terminal would obey.
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** The text in a style, where standard output is a terminal and NO_COLOR is not set. */
export function paint(style: Style, text: string): string {
  const { NO_COLOR = '' } = process.env;
  const isWanted = process.stdout.isTTY === true && NO_COLOR === '';
  return isWanted ? styleText(style, text) : text;
}

/** Remote text on one line: control characters, escape sequences' among them, and direction overrides become spaces. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]+/gu, ' ');
}
