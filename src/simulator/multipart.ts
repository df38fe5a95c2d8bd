/** Reads `multipart/form-data` (RFC 7578) as it comes: short fields are kept, the bytes of a file are handed on. */

export interface PartHead {
  /** Of the field. */
  readonly name: string;
  /** Null for a field that is no file. */
  readonly fileName: string | null;
}

/** Null for another content type, or one without a boundary. */
export function boundaryOf(contentType: string | undefined): string | null {
  const found = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType ?? '');
  return found?.[1] ?? found?.[2] ?? null;
}

const HEAD_END = '\r\n\r\n';

/**
 * @param onData told of each part when it begins, with nothing of it yet; awaited for each piece before more is read
 * @returns whether the form was whole
 */
export async function readForm(
  chunks: AsyncIterable<Buffer>,
  boundary: string,
  onData: (head: PartHead, data: Buffer) => Promise<void>,
): Promise<boolean> {
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // The first delimiter may stand at the very start, without a line before it.
  let pending = Buffer.from('\r\n');
  let head: PartHead | null = null;
  let state: 'data' | 'delimited' | 'head' | 'done' = 'data';
  for await (const chunk of chunks) {
    if (state === 'done') continue;
    pending = Buffer.concat([pending, chunk]);
    for (let goesOn = true; goesOn; ) {
      goesOn = false;
      if (state === 'data') {
        const at = pending.indexOf(delimiter);
        const end = at === -1 ? Math.max(0, pending.length - delimiter.length) : at;
        if (head !== null && end > 0) await onData(head, pending.subarray(0, end));
        pending = pending.subarray(at === -1 ? end : at + delimiter.length);
        if (at !== -1) state = 'delimited';
        goesOn = at !== -1;
      } else if (state === 'delimited' && pending.length >= 2) {
        state = pending.subarray(0, 2).toString() === '--' ? 'done' : 'head';
        goesOn = state === 'head';
      } else if (state === 'head') {
        const at = pending.indexOf(HEAD_END);
        if (at === -1) continue;
        head = readHead(pending.subarray(0, at).toString());
        await onData(head, pending.subarray(0, 0));
        pending = pending.subarray(at + HEAD_END.length);
        state = 'data';
        goesOn = true;
      }
    }
  }
  return state === 'done';
}

function readHead(text: string): PartHead {
  const disposition = /^content-disposition:(.*)$/im.exec(text)?.[1] ?? '';
  const read = (name: string): string | null =>
    new RegExp(`[;\\s]${name}="([^"]*)"`, 'i').exec(disposition)?.[1] ?? null;
  return { name: read('name') ?? '', fileName: read('filename') };
}
