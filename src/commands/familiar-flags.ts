/** Flags that other programs have: said is what this one calls them. */
import type { Command } from 'commander';
import { familiarSetting } from '../config/familiar-names.js';
import { usageError } from '../core/errors.js';

/** Of those that are no settings, or want more words. */
const WORDS: Readonly<Record<string, string>> = {
  '--api-key':
    'the key stays out of the command line: put it into OPENAI_API_KEY, or name another environment variable with --api-key-env NAME',
  '--file': 'the input needs no flag: llm-batch run FILE',
  '--first': 'did you mean --limit <n>?',
  '--format': 'the ending of -o FILE says it: .jsonl, .csv, .tsv, .parquet',
  '--head': 'did you mean --limit <n>?',
  '--input': 'the input needs no flag: llm-batch run FILE',
  '--key': 'put the key into OPENAI_API_KEY, or name another environment variable with --api-key-env NAME',
  '--out': 'did you mean -o FILE?',
  '--output-file': 'did you mean -o FILE?',
  '--output-format': 'the ending of -o FILE says it: .jsonl, .csv, .tsv, .parquet',
  '--response-format': 'did you mean --json-mode, or --schema FILE?',
  '--resume': 'that is a command: llm-batch resume',
  '--seed': 'did you mean --param seed=1?',
  '--stop': 'did you mean --param \'stop=["END"]\'?',
  '--top-p': 'did you mean --param top_p=0.9?',
};

/**
 * Looks at a command line before it is parsed.
 * @param words behind the verb
 * @throws LlmBatchError FLAG_UNKNOWN (exit 2) for a flag that the verb does not have and others call so
 */
export function refuseFamiliarFlags(verb: Command, words: readonly string[]): void {
  for (let at = 0; at < words.length; at += 1) {
    const [flag = ''] = (words[at] ?? '').split('=', 1);
    if (flag === '--') return;
    const option = verb.options.find(({ long, short }) => long === flag || short === flag);
    if (option !== undefined) {
      // What follows is its value, whatever it looks like.
      if (option.required && words[at] === flag) at += 1;
      continue;
    }
    const setting = flag.startsWith('--') ? familiarSetting(flag.slice(2)) : null;
    const own = setting?.flags;
    const hasSetting = verb.options.some(({ flags }) => own !== undefined && flags.endsWith(own));
    const hint = WORDS[flag] ?? (hasSetting ? `did you mean ${own}?` : null);
    if (hint !== null) {
      throw usageError('FLAG_UNKNOWN', `llm-batch ${verb.name()} has no flag ${flag}.`, hint);
    }
  }
}
