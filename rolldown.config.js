import { chmodSync, readFileSync } from 'node:fs';
import { defineConfig } from 'rolldown';

const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));

const ours = {
  platform: 'node',
  // What a command needs is loaded with it, wherever else it is loaded too.
  checks: { ineffectiveDynamicImport: false },
  external: (id) => Object.keys(dependencies).some((name) => id === name || id.startsWith(`${name}/`)),
};

/** What users run: hundreds of modules in a few files, since finding and opening each takes longer than to run it. */
export default defineConfig([
  {
    ...ours,
    input: {
      cli: 'src/cli.ts',
      'reader-process': 'src/input/reader-process.ts',
      'store-thread': 'src/store/sqlite/thread.ts',
    },
    output: {
      dir: 'dist',
      chunkFileNames: 'chunks/[name].js',
    },
    plugins: [
      {
        name: 'executable',
        // npm links dist/cli.js as a command.
        writeBundle: () => chmodSync('dist/cli.js', 0o755),
      },
    ],
  },
  { ...ours, input: 'src/client/service-client.ts', output: { dir: 'dist/client' } },
]);
