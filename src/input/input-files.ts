/** Which files an input consists of: the ones the user named, whether a shell or this program expanded their patterns. */
import { stat } from 'node:fs/promises';
import { dirname, extname, isAbsolute, posix, relative, resolve, sep } from 'node:path';
import { usageError } from '../core/errors.js';
import type { InputFormat } from '../core/input-format.js';
import { STANDARD_INPUT_NAME } from '../core/input-name.js';
import { statInput } from './bytes.js';
import { formatOfName, isWholeFileDocument } from './endings.js';
import { findFiles, folderOfGlob, isGlob, matchesGlob } from './glob.js';
import type { TextFile } from './text-files.js';

export interface LocateOptions {
  /** What relative paths start from. */
  readonly cwd: string;
  /** The format that the user states; null: the names decide. */
  readonly format?: InputFormat | null;
}

interface Located {
  /**
   * The same for the same input, however it was named: an absolute path, `-` for standard input, or for several text files
   * an absolute pattern with `*`, which stays the same when files come or go.
   */
  readonly identity: string;
  /** As messages call it. */
  readonly name: string;
}

export type LocatedInput = Located &
  (
    | { readonly kind: 'stream'; readonly path: string; readonly format: InputFormat }
    | { readonly kind: 'shards'; readonly format: InputFormat; readonly files: readonly TextFile[] }
    | { readonly kind: 'text_files'; readonly files: readonly TextFile[] }
  );

const STANDARD_INPUT = '-';
/** Hardly any file name has them. */
const IS_PATTERN = /[*?]/;
/** What this program writes beside its inputs is never taken for an input. */
const OWN_OUTPUT = /\.(?:results|errors|rejects|joined)\.[a-z.]+$/;

/** The folder of the text files that an identity stands for; null for other identities. */
export function folderOfTextFiles(identity: string): string | null {
  return IS_PATTERN.test(identity) ? folderOfGlob(identity) : null;
}

/** Where an input lies, which relative paths in its documents start from; for standard input, the working folder. */
export function folderOfInput(names: readonly string[], cwd: string): string {
  const [first = STANDARD_INPUT] = names;
  if (first === STANDARD_INPUT) return cwd;
  const path = resolve(cwd, first);
  return (isGlob(first) ? folderOfTextFiles(slashed(path)) : null) ?? dirname(path);
}

/** Whether a file is the input or would be one of its files. @param path absolute */
export function belongsToInput(path: string, identity: string): boolean {
  if (folderOfTextFiles(identity) === null) return path === identity;
  return matchesGlob(slashed(path), identity) && !OWN_OUTPUT.test(path);
}

/**
 * One input of any format, or several text files.
 * @param names paths, patterns in quotes, or `-`
 * @throws LlmBatchError (exit 2) for files that are not there or cannot be read together
 */
export async function locateInput(names: readonly string[], options: LocateOptions): Promise<LocatedInput> {
  const [first = STANDARD_INPUT, ...others] = names;
  const format = options.format ?? null;
  if (names.includes(STANDARD_INPUT)) {
    if (others.length > 0) {
      throw usageError(
        'INPUT_SEVERAL',
        'Standard input (-) cannot be read together with files.',
        'Name one or the other.',
      );
    }
    return {
      kind: 'stream',
      identity: STANDARD_INPUT,
      name: STANDARD_INPUT_NAME,
      path: first,
      format: format ?? 'jsonl',
    };
  }
  if (names.includes('')) {
    throw usageError(
      'INPUT_NOT_FOUND',
      'The name of the input is empty.',
      'Name a file; a shell variable in quotes may not be set.',
    );
  }
  const isPattern = others.length === 0 && (await meansPattern(first, options.cwd));
  if (others.length === 0 && !isPattern) return await locateFile(first, format, options.cwd);
  const paths = await expand(names, options.cwd);
  const [only] = paths;
  if (paths.length === 1 && only !== undefined && (format ?? formatOfName(only) ?? 'text') !== 'text') {
    return await locateFile(only, format, options.cwd);
  }
  const shared = sharedFormat(paths, format);
  const identity =
    isPattern && IS_PATTERN.test(first) ? slashed(resolve(options.cwd, first)) : patternOf(paths);
  const several = {
    identity,
    name: isPattern ? first : shownPath(identity, options.cwd),
    files: paths.map((path) => textFile(path, options.cwd)),
  };
  return shared === 'text'
    ? { kind: 'text_files', ...several }
    : { kind: 'shards', format: shared, ...several };
}

async function locateFile(path: string, format: InputFormat | null, cwd: string): Promise<LocatedInput> {
  const identity = resolve(cwd, path);
  const found = format ?? formatOfName(path) ?? 'jsonl';
  if (found === 'text' && isWholeFileDocument(path)) {
    await statInput(path, identity);
    return { kind: 'text_files', identity, name: path, files: [textFile(identity, cwd)] };
  }
  return { kind: 'stream', identity, name: path, path, format: found };
}

function textFile(absolutePath: string, cwd: string): TextFile {
  return { absolutePath, path: shownPath(absolutePath, cwd) };
}

/** As a user in `cwd` would type it. */
function shownPath(absolutePath: string, cwd: string): string {
  const path = relative(cwd, absolutePath);
  const isOutside = path.startsWith('..') || isAbsolute(path);
  return slashed(isOutside ? absolutePath : path);
}

async function meansPattern(name: string, cwd: string): Promise<boolean> {
  return isGlob(name) && !(await exists(resolve(cwd, name)));
}

/** @returns absolute paths, each once, sorted */
async function expand(names: readonly string[], cwd: string): Promise<string[]> {
  const paths = new Set<string>();
  for (const name of names) {
    const absolutePath = resolve(cwd, name);
    if (await meansPattern(name, cwd)) {
      const found = (await findFiles(slashed(absolutePath))).filter((path) => !OWN_OUTPUT.test(path));
      if (found.length === 0) {
        throw usageError(
          'INPUT_NOT_FOUND',
          `No file matches ${name}.`,
          'Check the pattern; ** stands for any folders.',
        );
      }
      for (const path of found) paths.add(path);
    } else {
      await statInput(name, absolutePath);
      paths.add(absolutePath);
    }
  }
  return [...paths].sort();
}

/** @throws LlmBatchError INPUT_SEVERAL (exit 2) for files of several formats, or databases */
function sharedFormat(paths: readonly string[], format: InputFormat | null): InputFormat {
  const formatOf = (path: string): InputFormat => format ?? formatOfName(path) ?? 'text';
  const [first = ''] = paths;
  const shared = formatOf(first);
  const other = paths.find((path) => formatOf(path) !== shared);
  if (other !== undefined) {
    throw usageError(
      'INPUT_SEVERAL',
      `Several files are one input only if they are of one format; ${first} is ${shared}, ${other} is ${formatOf(other)}.`,
      'Run those of each format by themselves.',
    );
  }
  if (shared !== 'sqlite') return shared;
  throw usageError(
    'INPUT_SEVERAL',
    `${first} is a database, which is an input by itself.`,
    'Run each by itself.',
  );
}

/** The pattern that a shell may have expanded into these paths. */
function patternOf(paths: readonly string[]): string {
  const folders = paths.map((path) => posix.dirname(slashed(path)).split('/'));
  const shared = folders.reduce((one, other) => {
    const end = one.findIndex((part, index) => part !== other[index]);
    return end === -1 ? one : one.slice(0, end);
  });
  const isFlat = folders.every((folder) => folder.length === shared.length);
  const endings = new Set(paths.map((path) => extname(path)));
  const [ending = ''] = endings.size === 1 ? endings : [];
  return `${shared.join('/')}/${isFlat ? '' : '**/'}*${ending}`;
}

function slashed(path: string): string {
  return sep === '/' ? path : path.split(sep).join('/');
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
