/** A real browser where one is installed; nothing is downloaded for it. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Null where there is none. */
export const CHROMIUM_PATH: string | null = findProgram(NAMES);

/** The first of these programs that the search path has. */
export function findProgram(names: readonly string[]): string | null {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of names) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {}
    }
  }
  return null;
}
