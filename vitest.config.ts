import { defineConfig } from 'vitest/config';

// One for all property tests of a run, told at its start; set it to have the same cases again.
process.env['TEST_SEED'] ??= String(Math.floor(Math.random() * 2 ** 31));

const shared = {
  setupFiles: ['test/support/isolate.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  pool: 'forks' as const,
  // Where somebody looks on, a race in a test is to be seen; in CI it must not hide what a change does.
  retry: process.env['CI'] === undefined ? 0 : 1,
};

export default defineConfig({
  test: {
    // Most of what tests wait for are other processes: a core that is left free for Vitest itself is idle.
    maxWorkers: '100%',
    projects: [
      {
        test: {
          ...shared,
          name: 'fast',
          include: ['test/**/*.test.ts'],
          // The whole fault suite has a project of its own; a short part of it runs with everything else.
          exclude: ['test/slow/**', 'test/faults/system/!(short).test.ts'],
          globalSetup: ['test/support/prepare.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'faults',
          include: ['test/faults/system/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 120_000,
          globalSetup: ['test/support/prepare.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'slow',
          include: ['test/slow/**/*.test.ts'],
          testTimeout: 600_000,
          globalSetup: ['test/support/prepare.ts'],
        },
      },
    ],
  },
});
