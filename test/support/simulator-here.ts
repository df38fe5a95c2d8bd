/**
 * A simulator inside the test, for whoever need not be judged apart from it: it starts in no time, where a process of its
 * own takes as long as a whole command. Asked as that one is, so that a test takes the one or the other.
 */
import { systemClock } from '../../src/core/clock.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { startSimulator } from '../../src/simulator/simulator.js';
import type { SimulatorProcess } from './simulator-process.js';

export type SimulatorHere = Omit<SimulatorProcess, 'pid'>;

export async function startSimulatorHere(options: SimulatorOptions = {}): Promise<SimulatorHere> {
  const simulator = await startSimulator(options, { clock: systemClock });
  return {
    url: simulator.url,
    books: async () => simulator.books(),
    heal: async () => simulator.heal(),
    reconfigure: async (changes) => simulator.reconfigure(changes),
    stop: () => simulator.close(),
  };
}
