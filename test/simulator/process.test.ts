import { describe, expect, it } from 'vitest';
import { simulatedAnswer } from '../../src/simulator/answer.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { waitFor } from '../support/wait-for.js';
import { chatBody } from './raw-call.js';

async function post({ url }: SimulatorProcess, text: string): Promise<Response> {
  return fetch(`${url}/chat/completions`, { method: 'POST', body: JSON.stringify(chatBody(text)) });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('a simulator in a process of its own', () => {
  it('answers, tells its books, changes, heals and ends', async () => {
    const simulator = await startSimulatorProcess({ seed: 3, outage: { fault: '503' } });
    try {
      expect((await post(simulator, 'a')).status).toBe(503);
      await simulator.heal();
      const body = (await (await post(simulator, 'a')).json()) as {
        choices: { message: { content: string } }[];
      };
      expect(body.choices[0]?.message.content).toBe(simulatedAnswer(chatBody('a'), { seed: 3 }).text);
      await simulator.reconfigure({ rpm: 1 });
      expect((await post(simulator, 'b')).status).toBe(429);
      expect(await simulator.books()).toMatchObject({
        calls: 3,
        accepted: 2,
        refusedByStatus: { 503: 1, 429: 1 },
      });
      await expect(simulator.reconfigure({ rpm: -1 })).rejects.toThrow('must be a whole number above zero');
    } finally {
      await simulator.stop();
    }
    await waitFor('the process to be gone', () => !isAlive(simulator.pid));
  });

  it('says why it does not start', async () => {
    await expect(startSimulatorProcess({ rpm: -1 })).rejects.toThrow(
      /"rpm" must be a whole number above zero/,
    );
  });
});
