/**
 * A simulator in a process of its own, for tests and benchmarks: reads its options as one line of JSON from
 * standard input (where no list of processes shows the keys), prints `{"url"}`, and ends with its input, so
 * that it never outlives the one who started it. Needs the compiled program.
 */
import { createInterface } from 'node:readline';
import { systemClock } from '../../build/core/clock.js';
import { startSimulator } from '../../build/simulator/simulator.js';

const lines = createInterface({ input: process.stdin });
let simulator = null;
lines.once('line', async (line) => {
  simulator = await startSimulator(JSON.parse(line), { clock: systemClock });
  process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
});
lines.once('close', () => simulator?.close());
