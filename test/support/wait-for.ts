/** Waits for a condition, never for a time: looks again and again until it holds or the deadline is over. */
export async function waitFor<Value>(
  what: string,
  look: () => Value | null | undefined | false | Promise<Value | null | undefined | false>,
  deadlineMs = 30_000,
): Promise<Value> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > giveUpAt) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
