/** What each kind of finding is called and what to do about it: for the page of `check` and for its JSON. */
import type { FindingKind } from '../runs/check/findings.js';

export interface FindingWords {
  /** Follows `1`. */
  readonly one: string;
  /** Follows any other number. */
  readonly many: string;
  /** One clause, imperative. */
  readonly advice: string;
}

export const FINDING_WORDS: Readonly<Record<FindingKind, FindingWords>> = {
  not_utf8: {
    one: 'line is not UTF-8',
    many: 'lines are not UTF-8',
    advice: 'convert the file: iconv -f ENCODING -t UTF-8 IN > OUT',
  },
  line_too_long: {
    one: 'line is too long',
    many: 'lines are too long',
    advice: 'split the documents, or raise --max-line-bytes',
  },
  not_json: {
    one: 'line is not JSON',
    many: 'lines are not JSON',
    advice: 'mend them; jq -c . writes one object a line',
  },
  not_an_object: {
    one: 'line is no JSON object',
    many: 'lines are no JSON objects',
    advice: `write {"text": …} instead of a bare value; jq -c '.[]' makes a line of each object of an array`,
  },
  lone_surrogate: {
    one: 'line holds half a character',
    many: 'lines hold half a character',
    advice: 'cut texts between characters, not inside them',
  },
  number_too_large: {
    one: 'line has a number that cannot be kept exactly',
    many: 'lines have a number that cannot be kept exactly',
    advice: 'write it as a string',
  },
  missing_field: {
    one: 'line lacks a field that the prompt needs',
    many: 'lines lack a field that the prompt needs',
    advice: 'add the field, or name one that all documents have with --prompt',
  },
  empty_message: {
    one: 'line has nothing to send',
    many: 'lines have nothing to send',
    advice: 'remove them, or fill the field',
  },
  unusable_image: {
    one: 'line names an image that cannot be sent',
    many: 'lines name an image that cannot be sent',
    advice:
      'mend the paths, or say with --image-folder where the images are, with --allow-any-path that they may be anywhere; PNG, JPEG, GIF, WebP and PDF are taken',
  },
  unusable_id: {
    one: 'line has an id that cannot be used',
    many: 'lines have an id that cannot be used',
    advice: 'give each a string or a number, or name another field with --id-field',
  },
  unusable_request: {
    one: 'line is a request that cannot be sent',
    many: 'lines are requests that cannot be sent',
    advice: 'change the field that is named',
  },
  unreadable_line: {
    one: 'line cannot be read',
    many: 'lines cannot be read',
    advice: 'mend them',
  },
  over_context: {
    one: 'document is longer than its model takes',
    many: 'documents are longer than their model takes',
    advice: 'split or shorten them, or choose a --model with a larger context window',
  },
  over_output_limit: {
    one: 'document asks for more output than its model gives',
    many: 'documents ask for more output than their model gives',
    advice: 'lower max_tokens or max_completion_tokens',
  },
  over_tokens_per_minute: {
    one: 'document is larger than the tokens of a minute',
    many: 'documents are larger than the tokens of a minute',
    advice: 'split them, or raise --tpm if the quota allows it',
  },
  over_context_with_cap: {
    one: 'document fits its model, but not with the output it asks for',
    many: 'documents fit their model, but not with the output they ask for',
    advice: 'lower max_tokens or max_completion_tokens; some servers refuse such a request',
  },
  repeated_id: {
    one: 'document has the id of another one',
    many: 'documents have the id of another one',
    advice:
      'each is sent and answered by itself, told apart by its order; give ids of their own if that was not meant',
  },
  repeated_document: {
    one: 'document repeats an earlier one',
    many: 'documents repeat an earlier one',
    advice: 'each is sent and paid for; --dedupe lets them share one call, or remove the repeats',
  },
  repeated_request: {
    one: 'document asks what another one asks',
    many: 'documents ask what another one asks',
    advice: 'each is sent and paid for; --dedupe lets them share one call, or remove the repeats',
  },
  template_unused: {
    one: 'document is a whole request, for which --prompt is not used',
    many: 'documents are whole requests, for which --prompt is not used',
    advice: 'leave out --prompt, or give records',
  },
  foreign_template: {
    one: 'prompt has marks that are not filled in',
    many: 'prompts have marks that are not filled in',
    advice: 'write {{field}} with two braces; there are no conditions, but {{field|default:"…"}}',
  },
  empty_field: {
    one: 'document has nothing in a field of the prompt',
    many: 'documents have nothing in a field of the prompt',
    advice: 'say what to send instead, {{field|default:"…"}}, or leave them out',
  },
  assistant_last: {
    one: 'request ends with a message of the assistant',
    many: 'requests end with a message of the assistant',
    advice: 'remove the answers of a file for fine-tuning; servers go on writing them, or refuse them',
  },
  batch_models: {
    one: 'model in one Batch API file',
    many: 'models in one Batch API file',
    advice: 'for the Batch API, write a file for each model; a direct run takes them together',
  },
  batch_endpoints: {
    one: 'endpoint in one Batch API file',
    many: 'endpoints in one Batch API file',
    advice: 'for the Batch API, write a file for each endpoint; a direct run takes them together',
  },
  batch_id_repeated: {
    one: 'custom_id comes again',
    many: 'custom_ids come again',
    advice: 'a direct run sends and answers each by itself; the Batch API refuses such a file',
  },
  batch_id_missing: {
    one: 'line has no custom_id',
    many: 'lines have no custom_id',
    advice: 'the Batch API refuses them',
  },
  batch_id_not_text: {
    one: 'custom_id is no string',
    many: 'custom_ids are no strings',
    advice: 'write them in quotes for the Batch API',
  },
  batch_id_too_long: {
    one: 'custom_id is longer than 64 characters',
    many: 'custom_ids are longer than 64 characters',
    advice: 'shorten them: some Batch APIs take 64 characters at most',
  },
  batch_field_missing: {
    one: 'line lacks a field of the Batch API',
    many: 'lines lack a field of the Batch API',
    advice: 'add "method": "POST" and "url": "/v1/chat/completions" for the Batch API',
  },
  batch_lines: {
    one: 'file has more lines than the Batch API takes',
    many: 'files have more lines than the Batch API takes',
    advice: 'split it for the Batch API: split -l 50000; a direct run takes any number',
  },
  batch_bytes: {
    one: 'file has more bytes than the Batch API takes',
    many: 'files have more bytes than the Batch API takes',
    advice: 'split it for the Batch API: split -C 190m; a direct run takes any size',
  },
};
