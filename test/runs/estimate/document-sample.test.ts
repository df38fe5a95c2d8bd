import { describe, expect, it } from 'vitest';
import { DocumentSample, type SampleBounds } from '../../../src/runs/estimate/document-sample.js';

function sampleOf(
  count: number,
  bounds: SampleBounds,
  body = (index: number) => String(index),
): DocumentSample {
  const sample = new DocumentSample(bounds);
  for (let index = 0; index < count; index += 1) sample.offer(body(index));
  return sample;
}

function bodies(sample: DocumentSample): string[] {
  return [...sample.documents()].map(({ body }) => body);
}

describe('a sample of documents', () => {
  it('is all of a small input, in its order', () => {
    const sample = sampleOf(5, { documents: 5, bytes: 1_000 });
    expect(bodies(sample)).toEqual(['0', '1', '2', '3', '4']);
    expect(sample.population).toEqual({ documents: 5, bytes: 5 });
  });

  it('is the same each time, and of different documents', () => {
    const first = bodies(sampleOf(10_000, { documents: 100, bytes: 1_000_000 }));
    expect(bodies(sampleOf(10_000, { documents: 100, bytes: 1_000_000 }))).toEqual(first);
    expect(new Set(first).size).toBe(100);
  });

  it('takes early and late documents alike', () => {
    const places = bodies(sampleOf(100_000, { documents: 2_000, bytes: 1_000_000 })).map(Number);
    // Tenths of the input, 200 expected in each; five standard deviations are 67.
    for (let tenth = 0; tenth < 10; tenth += 1) {
      const inside = places.filter((place) => Math.floor(place / 10_000) === tenth).length;
      expect(Math.abs(inside - 200), `tenth ${tenth} has ${inside}`).toBeLessThan(67);
    }
  });

  it('stays within its bytes however long documents are, and is still fair', () => {
    const sample = sampleOf(20_000, { documents: 1_000, bytes: 100_000 }, (index) =>
      String(index).padEnd(1_000, '.'),
    );
    const places = bodies(sample).map((body) => Number.parseInt(body, 10));
    expect(places.length).toBe(100);
    expect(new Set(places).size).toBe(100);
    // Half of them are expected in each half; five standard deviations are 25.
    expect(Math.abs(places.filter((place) => place < 10_000).length - 50)).toBeLessThan(25);
    expect(sample.population).toEqual({ documents: 20_000, bytes: 20_000_000 });
  });

  it('keeps one document that is longer than all that may be held', () => {
    const sample = sampleOf(3, { documents: 10, bytes: 10 }, (index) => `${index}`.repeat(100));
    expect(sample.size).toBe(1);
  });

  it('remembers the longest of all, by bytes, in the sample or not', () => {
    const sample = sampleOf(1_000, { documents: 10, bytes: 1_000_000 }, (index) =>
      index === 3 ? '山川湖海' : 'a long line',
    );
    expect(sample.longest()).toBe('山川湖海');
    for (const { body, bytes } of sample.documents()) expect(bytes).toBe(Buffer.byteLength(body));
  });
});
