/**
 * Before the first test file. Tests that start the program as a child process run what a user would, the compiled
 * `dist/cli.js`; property tests take their cases from one seed, which a failure in another place is repeated with; a
 * PostgreSQL is there for those that ask for it.
 */
import { execFileSync } from 'node:child_process';
import { offerPostgres } from './postgres.js';

export default function prepare(): Promise<() => Promise<void>> {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'ignore', 'inherit'] });
  console.info(`Property tests: TEST_SEED=${process.env['TEST_SEED']}`);
  return offerPostgres();
}
