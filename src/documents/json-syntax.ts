/**
 * Says where text stops being JSON. The engine's own messages differ between Node versions and often leave the place
 * out; this runs only for lines that `JSON.parse` has refused.
 */

/** One clause: what was expected or found, and at which character, counted from 1. @param text is not JSON */
export function describeJsonError(text: string): string {
  const scanner = new Scanner(text);
  return scanner.findError() ?? 'it cannot be parsed';
}

const LITERAL_OR_NUMBER = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
const FOREIGN_WORD = /-?[A-Za-z]+\b/y;
const JSON_WORDS: Readonly<Record<string, string>> = {
  NaN: 'null, or leave the field out',
  Infinity: 'null, or a string',
  '-Infinity': 'null, or a string',
  None: 'null',
  undefined: 'null',
  True: 'true',
  False: 'false',
};
const ESCAPE = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;
const SPACE = /[ \t\r\n]*/y;

class Scanner {
  readonly #text: string;
  #at = 0;
  /** The containers that are open, innermost last; a list and not recursion, for depth may be hostile. */
  readonly #open: ('{' | '[')[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  findError(): string | null {
    for (;;) {
      const error = this.#readValue();
      if (error !== null) return error;
      // A value is complete: close containers and go on to the next member.
      for (;;) {
        this.#skipSpace();
        const container = this.#open.at(-1);
        if (container === undefined) return this.#ended() ? null : this.#unexpected('the end of the line');
        const close = container === '{' ? '}' : ']';
        if (this.#take(',')) {
          if (container === '{') {
            const keyError = this.#readKey();
            if (keyError !== null) return keyError;
          }
          break;
        }
        if (!this.#take(close)) return this.#unexpected(`"," or "${close}"`);
        this.#open.pop();
      }
    }
  }

  /** Reads one scalar or everything down to the first scalar or empty container. */
  #readValue(): string | null {
    for (;;) {
      this.#skipSpace();
      if (this.#take('{')) {
        this.#skipSpace();
        if (this.#take('}')) return null;
        this.#open.push('{');
        const error = this.#readKey();
        if (error !== null) return error;
      } else if (this.#take('[')) {
        this.#skipSpace();
        if (this.#take(']')) return null;
        this.#open.push('[');
      } else if (this.#text[this.#at] === '"') {
        return this.#readString();
      } else {
        if (this.#takePattern(LITERAL_OR_NUMBER)) return null;
        return this.#foreignWord() ?? this.#unexpected('a value');
      }
    }
  }

  #readKey(): string | null {
    this.#skipSpace();
    if (this.#text[this.#at] !== '"') return this.#unexpected('a field name in double quotes');
    const error = this.#readString();
    if (error !== null) return error;
    this.#skipSpace();
    return this.#take(':') ? null : this.#unexpected('":"');
  }

  #readString(): string | null {
    const start = this.#at;
    this.#at += 1;
    for (;;) {
      if (this.#ended()) return `the string that begins at character ${start + 1} is not closed`;
      if (this.#take('"')) return null;
      if (this.#take('\\')) {
        if (!this.#takePattern(ESCAPE)) return this.#unexpected('an escape such as \\n or \\u00e9');
      } else if (this.#text.charCodeAt(this.#at) < 0x20) {
        return `a control character in a string at character ${this.#at + 1} must be escaped`;
      } else {
        this.#at += 1;
      }
    }
  }

  /** What Python and JavaScript write, and JSON does not have. */
  #foreignWord(): string | null {
    FOREIGN_WORD.lastIndex = this.#at;
    const [word = ''] = FOREIGN_WORD.exec(this.#text) ?? [];
    if (!Object.hasOwn(JSON_WORDS, word)) return null;
    return `${word} at character ${this.#at + 1} is no JSON: write ${JSON_WORDS[word]}`;
  }

  #unexpected(expected: string): string {
    if (this.#ended()) return `the line ends where ${expected} is expected`;
    const found = JSON.stringify(String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0));
    return `expected ${expected} at character ${this.#at + 1}, found ${found}`;
  }

  #ended(): boolean {
    return this.#at >= this.#text.length;
  }

  #skipSpace(): void {
    this.#takePattern(SPACE);
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #takePattern(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }
}
