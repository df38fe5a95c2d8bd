import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../src/core/redact.js';

const SECRET = 'sk-live-Zq7Lm2Xw9Rt4Yb8Nc3Vd6';
const redact = createRedactor([SECRET]);

describe('redacting secrets by their value', () => {
  it.each([
    ['whole', `Incorrect API key provided: ${SECRET}.`],
    ['whole, twice', `${SECRET} and ${SECRET}`],
    ['without its first characters', `key ${SECRET.slice(5)} is unknown`],
    ['without its last characters', `key ${SECRET.slice(0, 12)} is unknown`],
    ['a run out of its middle', `no such token: ${SECRET.slice(9, 20)}`],
    ['masked with stars', `Incorrect API key provided: sk-live*************Vd6.`],
    ['masked to three characters each side', 'key sk-***Vd6'],
    ['masked with an ellipsis', `key sk-live-Zq… was revoked`],
    ['masked with dots', `key ...c3Vd6 was revoked`],
    ['inside JSON', JSON.stringify({ headers: { authorization: `Bearer ${SECRET}` } })],
  ])('hides a key that comes back %s', (_form, text) => {
    const clean = redact(text);
    expect(clean).toContain('[redacted]');
    for (let start = 0; start + 6 <= SECRET.length; start += 1) {
      expect(clean).not.toContain(SECRET.slice(start, start + 6));
    }
  });

  it.each([
    ['in base64', Buffer.from(SECRET).toString('base64')],
    ['in base64 behind one character', Buffer.from(`a${SECRET}`).toString('base64')],
    ['in base64 behind two characters', Buffer.from(`ab${SECRET}`).toString('base64')],
    ['in base64 behind a scheme', Buffer.from(`Bearer ${SECRET} `).toString('base64')],
    ['in base64url', Buffer.from(SECRET).toString('base64url')],
    ['in hexadecimal', Buffer.from(SECRET).toString('hex')],
  ])('hides a key that comes back %s', (_form, text) => {
    const clean = redact(text);
    expect(clean).toContain('[redacted]');
    // What may stay is what stood beside the key, and the characters that it shares with the key's edges.
    expect(clean.replace('[redacted]', '').length).toBeLessThanOrEqual(16);
  });

  it('hides a key with characters that URLs escape', () => {
    const secret = 'p@ss/word+with=signs';
    expect(createRedactor([secret])(`proxy http://user:${encodeURIComponent(secret)}@host`)).toBe(
      'proxy http://user:[redacted]@host',
    );
  });

  it('leaves the rest of the text as it was', () => {
    expect(redact(`Incorrect API key provided: ${SECRET}. See the docs.`)).toBe(
      'Incorrect API key provided: [redacted]. See the docs.',
    );
    expect(redact('Wait ... then try again ****')).toBe('Wait ... then try again ****');
    expect(redact('')).toBe('');
  });

  it('hides a short secret only where it stands alone', () => {
    const short = createRedactor(['abc12']);
    expect(short('key abc12 refused')).toBe('key [redacted] refused');
    expect(short('xabc123')).toBe('xabc123');
  });

  it('does not take words of two or three characters for secrets', () => {
    expect(createRedactor(['no', '', 'key'])('no key was sent')).toBe('no key was sent');
  });

  it("hides what looks like somebody else's key", () => {
    const none = createRedactor([]);
    expect(none('upstream said: sk-proj-0123456789abcdefghij is invalid')).toBe(
      'upstream said: [redacted] is invalid',
    );
    expect(none('sent Bearer 0123456789abcdef')).toBe('sent [redacted]');
    expect(none('a task-oriented risk-averse answer')).toBe('a task-oriented risk-averse answer');
  });

  it('stays fast on long runs without a break', () => {
    const text = 'x'.repeat(100_000);
    expect(redact(text)).toBe(text);
  });
});
