import { defineConfig } from 'vitest/config';

const shared = {
  setupFiles: ['test/support/isolate.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  pool: 'forks' as const,
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: ['test/slow/**'],
          globalSetup: ['test/support/build.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'slow',
          include: ['test/slow/**/*.test.ts'],
          testTimeout: 600_000,
          globalSetup: ['test/support/build.ts'],
        },
      },
    ],
  },
});
