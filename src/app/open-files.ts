/** How many connections this process may have open at once: each is a file to the operating system, which counts them. */

/**
 * Kept free of connections: the store, the results, pictures that are read, what Node has open itself (26 in a run on
 * Linux), and some to spare.
 */
const OTHER_FILES = 48;

/** The most connections under a limit on open files; null: there is none. At least one, come what may. */
export function mostConnections(openFilesLimit: number | null): number {
  return openFilesLimit === null ? Number.POSITIVE_INFINITY : Math.max(1, openFilesLimit - OTHER_FILES);
}

/**
 * The limit in force (`ulimit -n`), which Node has raised as far as the system lets it; null where there is none, or
 * the system does not say.
 */
export function openFilesLimit(): number | null {
  // The only way to it that Node has on every system.
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const limit = Number(report.userLimits?.open_files?.soft ?? Number.NaN);
  return Number.isFinite(limit) ? limit : null;
}
