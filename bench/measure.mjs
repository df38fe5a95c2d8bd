// Runs a command and reads its processor time and peak memory from the operating system.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Processor seconds, wall seconds and peak resident megabytes of a child process. */
export async function measure(command, args, options = {}) {
  const before = process.resourceUsage();
  const startedAt = performance.now();
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], ...options });
  let stderr = '';
  child.stderr?.on('data', (text) => {
    stderr += text;
  });
  let peakKilobytes = 0;
  const watch = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      peakKilobytes = Math.max(peakKilobytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    } catch {}
  }, 50);
  const exitCode = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(watch);
  return {
    exitCode,
    wallSeconds: (performance.now() - startedAt) / 1_000,
    peakMegabytes: peakKilobytes / 1_024,
    stderr,
    before,
  };
}

export function round(number, digits = 2) {
  return Number(number.toFixed(digits));
}
