/**
 * Before the first test file. Tests that start the program as a child process run what a user would, the compiled
 * `dist/cli.js`; property tests take their cases from one seed, which a failure in another place is repeated with.
 */
import { execFileSync } from 'node:child_process';

export default function prepare(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'ignore', 'inherit'] });
  console.info(`Property tests: TEST_SEED=${process.env['TEST_SEED']}`);
}
