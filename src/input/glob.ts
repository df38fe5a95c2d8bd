/**
 * The file patterns of shells, for patterns that a user put in quotes: `*` and `?` inside one name, `[abc]`,
 * `{one,other}`, and `**` for any folders. A name that begins with a dot is found only by a pattern that spells it out.
 */
import { readdir, stat } from 'node:fs/promises';
import { join, posix } from 'node:path';

/** Whether text looks like a pattern. Look for a file of that very name first. */
export function isGlob(text: string): boolean {
  return /[*?]|\[.+\]|\{.*,.*\}/.test(text);
}

/** The folder that holds everything a pattern can find. @param pattern with forward slashes */
export function folderOfGlob(pattern: string): string {
  const parts = pattern.split('/');
  const firstGlob = parts.findIndex(isGlob);
  if (firstGlob === -1) return posix.dirname(pattern);
  const folder = parts.slice(0, firstGlob).join('/');
  return folder === '' && pattern.startsWith('/') ? '/' : folder;
}

/** @param path and pattern both absolute or both relative to the same folder, with forward slashes */
export function matchesGlob(path: string, pattern: string): boolean {
  return expandBraces(pattern).some((each) => matchesParts(path.split('/'), each.split('/')));
}

function matchesParts(names: readonly string[], parts: readonly string[]): boolean {
  const [part, ...laterParts] = parts;
  if (part === undefined) return names.length === 0;
  const [name, ...laterNames] = names;
  if (part === '**') {
    if (matchesParts(names, laterParts)) return true;
    return name !== undefined && !name.startsWith('.') && matchesParts(laterNames, parts);
  }
  return name !== undefined && nameMatcher(part)(name) && matchesParts(laterNames, laterParts);
}

/**
 * The files that a pattern finds, links to files included, each once and sorted by path (by UTF-16 unit, the same
 * everywhere). Folders that may not be read are skipped, as shells do.
 * @param pattern absolute, with forward slashes
 */
export async function findFiles(pattern: string): Promise<string[]> {
  const found = new Set<string>();
  for (const each of expandBraces(pattern)) {
    const parts = each.split('/');
    await walk(parts[0] === '' ? '/' : (parts[0] ?? ''), parts.slice(1), found);
  }
  return [...found].sort();
}

async function walk(folder: string, parts: readonly string[], found: Set<string>): Promise<void> {
  const [part, ...later] = parts;
  if (part === undefined) return;
  if (part === '**') {
    await walk(folder, later.length === 0 ? ['*'] : later, found);
    for (const { name, isFolder } of await entriesOf(folder)) {
      if (isFolder && !name.startsWith('.')) await walk(join(folder, name), parts, found);
    }
    return;
  }
  if (later.length === 0) {
    const matches = nameMatcher(part);
    for (const { name, isFolder } of await entriesOf(folder)) {
      if (!isFolder && matches(name) && (await isFile(join(folder, name)))) found.add(join(folder, name));
    }
    return;
  }
  if (!isGlob(part)) {
    await walk(join(folder, part), later, found);
    return;
  }
  const matches = nameMatcher(part);
  for (const { name, isLink, isFolder } of await entriesOf(folder)) {
    if ((isFolder || isLink) && matches(name)) await walk(join(folder, name), later, found);
  }
}

async function entriesOf(folder: string) {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    // A link is followed where the pattern names it, but never through `**`: it may lead in a circle.
    return entries.map((entry) => ({
      name: entry.name,
      isFolder: entry.isDirectory(),
      isLink: entry.isSymbolicLink(),
    }));
  } catch {
    return [];
  }
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (status) => status.isFile(),
    () => false,
  );
}

function nameMatcher(part: string): (name: string) => boolean {
  let source = '';
  for (const [piece, set] of part.matchAll(/\*+|\?|\[(!?[^\]]+)\]|[^*?[]+|\[/g)) {
    if (piece.startsWith('*')) source += '.*';
    else if (piece === '?') source += '.';
    else if (set !== undefined) source += `[${set.replace(/^!/, '^').replace(/[\\[]/g, '\\$&')}]`;
    else source += piece.replace(/[.+^${}()|\\/[\]]/g, '\\$&');
  }
  const pattern = compile(source);
  return (name) => (pattern?.test(name) ?? name === part) && (!name.startsWith('.') || part.startsWith('.'));
}

/** Null for a set without meaning such as `[z-a]`, which then stands for itself. */
function compile(source: string): RegExp | null {
  try {
    return new RegExp(`^${source}$`, 'su');
  } catch {
    return null;
  }
}

/** `a{b,c}` is `ab` and `ac`; braces inside braces too. */
function expandBraces(pattern: string): string[] {
  const match = /\{([^{}]*,[^{}]*)\}/.exec(pattern);
  if (match?.[1] === undefined) return [pattern];
  const before = pattern.slice(0, match.index);
  const after = pattern.slice(match.index + match[0].length);
  return match[1].split(',').flatMap((choice) => expandBraces(before + choice + after));
}
