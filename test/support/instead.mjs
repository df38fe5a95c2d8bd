/**
 * Runs another entry than the program's own: `node instead.mjs ENTRY node dist/cli.js ARGUMENTS…` runs ENTRY as if it
 * had been started with ARGUMENTS. So whatever puts a command under strace or a patched copy to the test can be a
 * wrapper of the usual command line.
 */
import { pathToFileURL } from 'node:url';

const [node, , entry, , , ...programArguments] = process.argv;
process.argv = [node, entry, ...programArguments];
await import(pathToFileURL(entry).href);
