import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Repeat, RepeatFinder } from '../../../src/runs/check/repeats.js';

/** The same by the plain means that a large input has no memory for. */
function repeatsByMaps(documents: readonly (readonly [key: string, request: string])[]): (Repeat | null)[] {
  const keys = new Map<string, { line: number; request: string }>();
  const requests = new Map<string, number>();
  return documents.map(([key, request], index) => {
    const line = index + 1;
    const withKey = keys.get(key);
    const withRequest = requests.get(request);
    if (withKey === undefined) keys.set(key, { line, request });
    if (withRequest === undefined) requests.set(request, line);
    if (withKey !== undefined) {
      const kind = withKey.request === request ? 'repeated_document' : 'repeated_id';
      return { kind, firstLine: withKey.line };
    }
    return withRequest === undefined ? null : { kind: 'repeated_request', firstLine: withRequest };
  });
}

describe('RepeatFinder', () => {
  it('finds what two maps would find', () => {
    const name = fc.integer({ min: 0, max: 20 }).map(String);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, name), { maxLength: 60 }), (documents) => {
        const finder = new RepeatFinder();
        const found = documents.map(([key, request], index) => finder.see(key, request, index + 1));
        expect(found).toEqual(repeatsByMaps(documents));
      }),
      { numRuns: 200 },
    );
  });

  it('knows the first line of each of 200,000 documents, after its tables have grown many times', () => {
    const finder = new RepeatFinder();
    const count = 200_000;
    for (let line = 1; line <= count; line += 1) {
      if (finder.see(`key-${line}`, `request-${line}`, line) !== null)
        throw new Error(`line ${line} is no repeat`);
    }
    for (let line = 1; line <= count; line += 7) {
      const again = finder.see(`key-${line}`, `request-${line}`, count + line);
      if (again?.kind !== 'repeated_document' || again.firstLine !== line) {
        throw new Error(`the repeat of line ${line} was taken for ${JSON.stringify(again)}`);
      }
    }
    expect(finder.see('another', 'request-5', 1)).toEqual({ kind: 'repeated_request', firstLine: 5 });
    expect(finder.see('key-5', 'another', 1)).toEqual({ kind: 'repeated_id', firstLine: 5 });
  });
});
