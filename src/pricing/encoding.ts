/** The byte-pair encoding of a model, loaded when it is first needed. */

export type EncodingName = 'o200k_base' | 'o200k_harmony' | 'cl100k_base' | 'p50k_base' | 'r50k_base';

export interface ModelEncoding {
  readonly name: EncodingName;
  /** False if the model's own tokenizer differs or is not published: counts are estimates then. */
  readonly published: boolean;
}

/** Counts the tokens of a text. Special tokens (`<|endoftext|>`) count as the characters they are written with. */
export type CountTokens = (text: string) => number;

/** Model families and their encodings, as OpenAI's tiktoken lists them; the first match counts. */
const ENCODINGS: readonly (readonly [RegExp, EncodingName])[] = [
  [/^gpt-oss/, 'o200k_harmony'],
  [/^(?:chat)?gpt-4o|^gpt-4\.[15]|^gpt-5|^o[134](?:-|$)|^codex-mini|^computer-use/, 'o200k_base'],
  [/^gpt-4|^gpt-3\.5|^gpt-35|^text-embedding-(?:3|ada-002)|^(?:babbage|davinci)-002/, 'cl100k_base'],
  [/^text-davinci-00[23]|^code-(?:davinci|cushman)|^davinci-codex|^cushman-codex/, 'p50k_base'],
  [/^(?:text-)?(?:davinci|curie|babbage|ada)(?:-001)?$|^gpt-?2$/, 'r50k_base'],
];

/**
 * Unknown models, other vendors' included, are counted with the newest encoding and marked as unpublished: such counts are
 * commonly 10-30 % off. A gateway's prefix (`openai/`) and a fine-tune's (`ft:`) are ignored.
 */
export function encodingOf(model: string): ModelEncoding {
  const name = bareModelName(model);
  const known = ENCODINGS.find(([pattern]) => pattern.test(name));
  return known === undefined ? { name: 'o200k_base', published: false } : { name: known[1], published: true };
}

/** `openai/gpt-4o` and `ft:gpt-4o:acme::1` are `gpt-4o` to the tokenizer. */
export function bareModelName(model: string): string {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return name.startsWith('ft:') ? (name.split(':')[1] ?? name) : name;
}

/**
 * Loads one encoding, 80-350 ms and about 60 MB, once per process.
 *
 * @throws nothing at counting: any string has a count, lone surrogates included
 */
export async function loadEncoding(name: EncodingName): Promise<CountTokens> {
  const { countTokens, clearMergeCache } = await importEncoding(name);
  const allAsText = { disallowedSpecial: new Set<string>() };
  let charactersCached = 0;
  return (text) => {
    // The package's cache of merged words holds slices of the texts they came from, and evicts slowly once it
    // is full. Emptied every million characters it never fills, and no old document stays in memory.
    charactersCached += text.length;
    if (charactersCached > CHARACTERS_PER_CACHE) {
      clearMergeCache();
      charactersCached = text.length;
    }
    return countTokens(text, allAsText);
  };
}

const CHARACTERS_PER_CACHE = 1_000_000;

function importEncoding(name: EncodingName) {
  switch (name) {
    case 'o200k_base':
    // Harmony differs only in its special tokens, which are counted as text here.
    case 'o200k_harmony':
      return import('gpt-tokenizer/encoding/o200k_base');
    case 'cl100k_base':
      return import('gpt-tokenizer/encoding/cl100k_base');
    case 'p50k_base':
      return import('gpt-tokenizer/encoding/p50k_base');
    case 'r50k_base':
      return import('gpt-tokenizer/encoding/r50k_base');
  }
}
