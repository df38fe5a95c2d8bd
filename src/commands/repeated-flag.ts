/** For commander: a flag that may be given several times gathers its values, the first first. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
