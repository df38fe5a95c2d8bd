/** The last gate before a terminal: everything that the program prints passes it, whatever it was made of. */

import type { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { gated } from './foreign-text.js';

type Written = (error?: Error | null) => void;
type Write = (content: string | Uint8Array, written?: Written) => boolean;

interface Gate {
  readonly direct: Write;
  readonly keepsColour: boolean;
}

const gates = new WeakMap<Writable, Gate>();

/**
 * From now on text written to the stream cannot steer a terminal.
 * @param keepsColour the stream's terminal shows colours, so those that the program draws with pass
 */
export function gateStream(stream: Writable, keepsColour: boolean): void {
  const direct: Write = stream.write.bind(stream);
  gates.set(stream, { direct, keepsColour });
  const decoder = new StringDecoder('utf8');
  stream.write = (content: string | Uint8Array, encoding?: BufferEncoding | Written, written?: Written) => {
    const text = typeof content === 'string' ? content : decoder.write(Buffer.from(content));
    return direct(gated(text, keepsColour), typeof encoding === 'function' ? encoding : written);
  };
}

/** Writes a drawing, which moves the cursor itself. @param compose takes all text that stands in it through `safe` */
export function draw(stream: Writable, compose: (safe: (text: string) => string) => string): void {
  const gate = gates.get(stream);
  const drawing = compose((text) => (gate === undefined ? text : gated(text, gate.keepsColour)));
  (gate?.direct ?? stream.write.bind(stream))(drawing);
}

/** Writes data (results, a page): byte for byte into a file or a pipe, through the gate onto a terminal. */
export function writeData(
  stream: Writable & { readonly isTTY?: boolean | undefined },
  content: string | Uint8Array,
  written?: Written,
): void {
  const direct = stream.isTTY === true ? undefined : gates.get(stream)?.direct;
  (direct ?? stream.write.bind(stream))(content, written);
}
