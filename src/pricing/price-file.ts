/** Prices from the user's own file, in either of two formats. */
import { readFile } from 'node:fs/promises';
import { type LlmBatchError, usageError } from '../core/errors.js';
import { isJsonObject, type JsonObject } from '../core/json.js';
import { isLiteLlmTable, readLiteLlmTable } from './litellm-prices.js';
import { PriceProblem, readOwnTable } from './own-prices.js';
import { type FilePrice, modelToPrice, type PriceBook } from './price-book.js';

/**
 * Reads a price file: this program's own short format (see `readOwnTable`) or LiteLLM's table.
 *
 * @throws LlmBatchError PRICES_UNREADABLE, PRICES_NOT_JSON or PRICES_INVALID (exit 2), naming file and place
 */
export async function loadPriceFile(path: string): Promise<PriceBook> {
  const file = parse(await read(path), path);
  const isOwn = isJsonObject(file['models'] ?? null);
  if (!isOwn && isLiteLlmTable(file)) return bookOf(path, null, readLiteLlmTable(file));
  try {
    const { date, prices } = readOwnTable(file);
    return bookOf(path, date, prices);
  } catch (error) {
    throw error instanceof PriceProblem ? invalid(path, error) : error;
  }
}

function bookOf(path: string, date: string | null, prices: ReadonlyMap<string, FilePrice>): PriceBook {
  return {
    source: path,
    date,
    priceOf(asked, query) {
      const model = modelToPrice(asked, query);
      if (model === null) return null;
      const server = serverOf(query.baseUrl);
      for (const name of namesOf(model, server)) {
        const price = prices.get(name);
        if (price === undefined || !isPriceAt(server, price)) continue;
        const { servedBy: _, ...stated } = price;
        return { model: name, table: { source: path, date }, ...stated };
      }
      return null;
    },
  };
}

/** The prefix under which LiteLLM's table lists a provider's models, by the provider's host. */
const PREFIXES: readonly (readonly [RegExp, string])[] = [
  [/^api\.openai\.com$/, 'openai'],
  [/\.openai\.azure\.com$|\.services\.ai\.azure\.com$|\.cognitiveservices\.azure\.com$/, 'azure'],
  [/^api\.groq\.com$/, 'groq'],
  [/^api\.mistral\.ai$/, 'mistral'],
  [/^api\.together\.(?:xyz|ai)$/, 'together_ai'],
  [/^generativelanguage\.googleapis\.com$/, 'gemini'],
  [/^api\.anthropic\.com$/, 'anthropic'],
  [/(?:^|\.)openrouter\.ai$/, 'openrouter'],
  [/^api\.deepseek\.com$/, 'deepseek'],
  [/^api\.fireworks\.ai$/, 'fireworks_ai'],
  [/^api\.perplexity\.ai$/, 'perplexity'],
  [/^api\.cerebras\.ai$/, 'cerebras'],
  [/^api\.x\.ai$/, 'xai'],
];

function serverOf(baseUrl: string | null): string | null {
  const host = baseUrl !== null && URL.canParse(baseUrl) ? new URL(baseUrl).hostname : '';
  return PREFIXES.find(([pattern]) => pattern.test(host))?.[1] ?? null;
}

/** Names with the server's prefix come first. A dated snapshot costs what its model costs, unless it is listed itself. */
function namesOf(model: string, server: string | null): string[] {
  const names = [...new Set([model, model.replace(/-(?:\d{4}-\d{2}-\d{2}|20\d{6})$/, '')])];
  return server === null ? names : [...names.map((name) => `${server}/${name}`), ...names];
}

/** Another provider's price for a model of the same name means nothing, except that Azure and OpenAI charge the same. */
function isPriceAt(server: string | null, { servedBy }: FilePrice): boolean {
  if (server === null || servedBy === null || servedBy === server) return true;
  return server === 'azure' || server === 'openai' ? servedBy.includes('openai') : false;
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const reason = isMissing ? 'does not exist' : 'cannot be read';
    throw usageError('PRICES_UNREADABLE', `The price file ${path} ${reason}.`);
  }
}

function parse(text: string, path: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (cause) {
    throw usageError(
      'PRICES_NOT_JSON',
      `The price file ${path} is not JSON${placeOf(cause, text)}.`,
      'Correct it there; JSON takes no comments and no comma after the last entry.',
    );
  }
  if (isJsonObject(value)) return value;
  throw invalid(path, new PriceProblem('', 'must be a JSON object', null));
}

/** V8 gives the position of the character, or says that the text ended, or quotes the text around the fault. */
function placeOf(cause: unknown, text: string): string {
  const message = cause instanceof Error ? cause.message : '';
  const position = /position (\d+)/.exec(message)?.[1] ?? (/end of JSON/.test(message) ? text.length : null);
  if (position === null) return ` (${message})`;
  const before = text.slice(0, Number(position)).split('\n');
  return ` (line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1})`;
}

function invalid(path: string, { place, message, hint }: PriceProblem): LlmBatchError {
  const where = place === '' ? `The price file ${path}` : `${place} in the price file ${path}`;
  return usageError('PRICES_INVALID', `${where} ${message}.`, hint ?? FORMAT_HINT);
}

const FORMAT_HINT =
  'Write {"models": {"<model>": {"input": 0.15, "output": 0.6}}} in US dollars per million tokens, or give LiteLLM\'s model_prices_and_context_window.json.';
