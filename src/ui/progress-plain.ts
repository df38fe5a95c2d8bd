/** One moment of a run as one plain line, for logs and pipes. */
import type { ChalkInstance } from 'chalk';
import type { ProgressSnapshot } from '../core/progress-snapshot.js';
import { fieldLine } from './field-line.js';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  formatQuantity,
  formatRate,
  formatRemaining,
} from './numbers.js';
import { runningFields, stoppingFields } from './progress-fields.js';

/** What a log is read for, and a bar has no room for. */
function speedWords({ documentsPerSecond, latencyMs }: ProgressSnapshot): string[] {
  const words = documentsPerSecond === null ? [] : [`${formatRate(documentsPerSecond)} documents/s`];
  if (latencyMs === null) return words;
  const { p50, p95, p99 } = latencyMs;
  return [
    ...words,
    `p50 ${formatDuration(p50)}, p95 ${formatDuration(p95)}, p99 ${formatDuration(p99)} a call`,
  ];
}

/** The whole line, however long: a log has no width. */
export function renderPlainLine(snapshot: ProgressSnapshot, colours: ChalkInstance): string {
  if (snapshot.phase === 'importing') {
    const bytes =
      snapshot.importTotalBytes === null
        ? formatBytes(snapshot.importedBytes)
        : `${formatBytes(snapshot.importedBytes)} of ${formatBytes(snapshot.importTotalBytes)}`;
    return `reading ${formatQuantity(snapshot.importedDocuments, 'document')} · ${bytes}`;
  }
  const done = snapshot.completed + snapshot.failed;
  const share = snapshot.total > 0 ? ` (${formatPercent(done, snapshot.total)})` : '';
  const count = `${formatCount(done)}/${formatCount(snapshot.total)} done${share}`;
  switch (snapshot.phase) {
    case 'stopping':
      return `${count} · ${fieldLine(stoppingFields(snapshot, colours).slice(0, 1), Number.POSITIVE_INFINITY, colours.dim)}`;
    case 'running': {
      const eta = snapshot.etaMs === null ? '' : ` · ETA ${formatRemaining(snapshot.etaMs)}`;
      const fields = fieldLine(runningFields(snapshot, colours), Number.POSITIVE_INFINITY, colours.dim);
      return [`${count}${eta}`, fields, ...speedWords(snapshot)].join(' · ');
    }
  }
}
