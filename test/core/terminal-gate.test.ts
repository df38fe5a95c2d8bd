/** What reaches a terminal, a pipe or a file of all that is printed. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { draw, gateStream, writeData } from '../../src/core/terminal-gate.js';
import { steeringIn } from '../support/terminal.js';

const HOSTILE = 'a\u001b]0;title\u0007\u001b[2A\u009b2J\u202eb\u061cc\r\u0000d\u001b[8me\u001b[41m';

function gatedStream({ isTTY = false, keepsColour = false } = {}) {
  const stream = Object.assign(new PassThrough(), { isTTY });
  gateStream(stream, keepsColour);
  return { stream, read: () => String(stream.read() ?? '') };
}

describe('the gate before a stream', () => {
  it('lets nothing through that steers a terminal, and all the rest', () => {
    const { stream, read } = gatedStream();
    stream.write(`${HOSTILE}\tté 😀\n\u001b[31mred`);
    expect(read()).toBe('a�]0;title��[2A�2J�b�c\n�d�[8me�[41m\tté 😀\n�[31mred');
  });

  it('lets the colours of the program through where they show, and no others', () => {
    const { stream, read } = gatedStream({ keepsColour: true });
    stream.write(`\u001b[31m\u001b[1mred\u001b[22m\u001b[39m${HOSTILE}`);
    const shown = read();
    expect(shown).toContain('\u001b[31m\u001b[1mred\u001b[22m\u001b[39ma�');
    expect(steeringIn(shown)).toEqual([]);
  });

  it('takes text inside a drawing, whose own moves pass', () => {
    const { stream, read } = gatedStream();
    draw(stream, (safe) => `\u001b[2A${safe(HOSTILE)}\u001b[K`);
    const shown = read();
    expect(shown.startsWith('\u001b[2A')).toBe(true);
    expect(shown.endsWith('\u001b[K')).toBe(true);
    expect(steeringIn(shown.slice(4, -3))).toEqual([]);
  });

  it('leaves data as they are in a file or a pipe, and takes them on a terminal, characters whole', () => {
    const bytes = Buffer.from(`é${HOSTILE}`);
    const pipe = gatedStream();
    writeData(pipe.stream, bytes);
    writeData(pipe.stream, HOSTILE);
    expect(pipe.read()).toBe(`é${HOSTILE}${HOSTILE}`);

    const terminal = gatedStream({ isTTY: true });
    for (const part of [bytes.subarray(0, 1), bytes.subarray(1)]) writeData(terminal.stream, part);
    const shown = terminal.read();
    expect(shown.startsWith('éa�')).toBe(true);
    expect(steeringIn(shown)).toEqual([]);
  });

  it('tells whoever wrote when it is written', async () => {
    const { stream } = gatedStream();
    await new Promise((resolve) => stream.write('x', resolve));
    await new Promise((resolve) => stream.write('x', 'utf8', resolve));
    await new Promise<unknown>((resolve) => writeData(stream, 'x', resolve));
  });
});
