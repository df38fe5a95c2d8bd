import { describe, expect, it } from 'vitest';
import { LaneHealth } from '../../src/engine/lane-health.js';
import { seededRandom } from '../support/seeded-random.js';

describe('a server', () => {
  it('is down when ten documents in a row meet trouble, and up when a call sent since is answered', () => {
    const health = new LaneHealth(false);
    for (let document = 1; document < 10; document += 1) {
      expect(health.troubled(document, 0, 1_000 + document, true).wentDown).toBe(false);
    }
    expect(health.troubled(10, 0, 1_010, true).wentDown).toBe(true);
    expect(health.troubled(11, 0, 1_011, true).wentDown).toBe(false);
    expect(health.answered(12, 900, 1_500)).toBeNull();
    expect(health.downSinceMs).toBe(1_010);
    expect(health.answered(13, 1_400, 2_000)).toBe(1_010);
    expect(health.downSinceMs).toBeNull();
  });

  it('is not down for an answer in between, nor for one document that fails again and again', () => {
    const health = new LaneHealth(false);
    for (let document = 1; document < 10; document += 1) health.troubled(document, 0, document, true);
    health.answered(100, 5, 10);
    for (let document = 11; document < 20; document += 1) health.troubled(document, 0, document, true);
    for (let call = 0; call < 30; call += 1) health.troubled(19, 0, 20 + call, true);
    expect(health.downSinceMs).toBeNull();
  });

  it('is not down because documents fail at the end that have failed while others were answered', () => {
    const health = new LaneHealth(false);
    for (let document = 1; document <= 40; document += 1) health.answered(document, 0, document);
    for (let document = 41; document <= 80; document += 1) {
      expect(health.troubled(document, 1, document, true).isCharged).toBe(true);
    }
    expect(health.downSinceMs).toBeNull();
  });

  it('is not down before the run is known to be in order', () => {
    const health = new LaneHealth(false);
    for (let document = 1; document <= 40; document += 1) {
      expect(health.troubled(document, 0, document, false).wentDown).toBe(false);
    }
  });
});

describe('a document that meets trouble', () => {
  it('alone among many uses an attempt each time', () => {
    const health = new LaneHealth(false);
    for (let document = 1; document <= 40; document += 1) health.answered(document, 0, document);
    for (let attempts = 0; attempts < 4; attempts += 1) {
      expect(health.troubled(99, attempts, 50, true)).toMatchObject({
        isCharged: true,
        failures: attempts + 1,
      });
    }
  });

  it('together with all others uses none, once it shows that the server is down', () => {
    const health = new LaneHealth(false);
    for (let document = 0; document < 40; document += 1) {
      expect(health.troubled(document, 0, document, true).isCharged).toBe(document < 9);
    }
    const later = Array.from({ length: 400 }, (_, call) => health.troubled(call % 40, 0, 100 + call, true));
    expect(later.filter(({ isCharged }) => isCharged)).toHaveLength(0);
  });

  it.each([
    [0.05, 0],
    [0.2, 0],
    [0.5, 0],
    [0.8, 4],
  ])('is not failed by chance where %s of all calls fail, or hardly ever: %i of 4,000', (share, most) => {
    const random = seededRandom(3);
    const health = new LaneHealth(false);
    let failed = 0;
    const documents = 4_000;
    for (let document = 0; document < 64; document += 1) health.answered(-document, 0, 0);
    const open = Array.from({ length: 32 }, (_, id) => ({ id, attempts: 0 }));
    for (let next = open.length, nowMs = 0; next < documents; nowMs += 1) {
      const slot = Math.floor(random() * open.length);
      const document = open[slot];
      if (document === undefined) throw new RangeError(`no slot ${slot}`);
      if (random() < share) {
        if (health.troubled(document.id, document.attempts, nowMs, true).isCharged) document.attempts += 1;
        if (document.attempts < 5) continue;
        failed += 1;
      } else health.answered(document.id, nowMs, nowMs);
      open[slot] = { id: next, attempts: 0 };
      next += 1;
    }
    expect(failed).toBeLessThanOrEqual(most);
  });

  it('and never heals fails after as many attempts as ever, where a third of all documents are like it', () => {
    const health = new LaneHealth(false);
    for (let attempts = 0, id = 1; attempts < 5; attempts += 1, id += 10) {
      for (let other = 0; other < 6; other += 1) health.answered(id + other, id, id);
      for (const bad of [900, 901, 902])
        expect(health.troubled(bad, attempts, id, true).isCharged).toBe(true);
    }
  });
});

describe('the first call to a server that is new', () => {
  it('goes alone until it has ended, or for two seconds', () => {
    const health = new LaneHealth(true);
    expect(health.trialForMs(100)).toBe(0);
    health.admitted(100);
    expect(health.trialForMs(600)).toBe(1_500);
    expect(health.trialForMs(2_100)).toBe(0);
    health.ended(700);
    expect(health.trialForMs(701)).toBe(0);
    health.admitted(800);
    expect(health.trialForMs(801)).toBe(0);
  });

  it('leaves its place to another when it is not sent after all', () => {
    const health = new LaneHealth(true);
    health.admitted(100);
    health.withdrawn(150);
    expect(health.trialForMs(160)).toBe(0);
    health.admitted(160);
    expect(health.trialForMs(160)).toBe(2_000);
  });
});
