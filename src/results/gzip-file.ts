/** A file that is compressed on its way out. */
import { createGzip } from 'node:zlib';
import type { AtomicFile } from './atomic-file.js';

/** The same file, but what is written to it arrives as one gzip stream; complete or absent as before. */
export function gzipped(file: AtomicFile): AtomicFile {
  const gzip = createGzip();
  // What goes wrong is told by `arrived`.
  gzip.on('error', () => undefined);
  const arrived = (async () => {
    for await (const bytes of gzip) await file.write(bytes as Uint8Array);
  })();
  arrived.catch(() => undefined);
  return {
    path: file.path,
    async write(chunk) {
      // Told once the chunk is taken in. A file that cannot be written ends the stream, and only `arrived` says why.
      const taken = new Promise((resolve) => gzip.write(chunk, resolve));
      if (await Promise.race([taken, arrived])) await arrived;
    },
    async commit() {
      gzip.end();
      await arrived;
      await file.commit();
    },
    async abort() {
      gzip.destroy();
      await arrived.catch(() => undefined);
      await file.abort();
    },
  };
}
