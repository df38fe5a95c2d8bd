import { expect, it } from 'vitest';
import type { ParsedDocument } from '../../../src/documents/document.js';
import {
  BatchFileRules,
  type BatchRule,
  MOST_BATCH_BYTES,
} from '../../../src/runs/check/batch-file-rules.js';

const document: ParsedDocument = {
  form: 'batch_line',
  endpoint: 'chat',
  fields: { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: {} },
  request: {},
  priority: null,
  metadataJson: null,
};

function brokenBy(bytes: readonly number[]): [BatchRule, string][] {
  const broken: [BatchRule, string][] = [];
  const rules = new BatchFileRules((rule, { message }) => broken.push([rule, message]));
  bytes.forEach((each, index) => {
    rules.add(index + 1, document, 'gpt-4o-mini', each);
  });
  rules.finish();
  return broken;
}

it('a Batch API file of 200 MB is taken, one of a byte more is not', () => {
  expect(brokenBy([MOST_BATCH_BYTES - 10, 10])).toEqual([]);
  expect(brokenBy([MOST_BATCH_BYTES - 10, 11])).toEqual([
    ['batch_bytes', '200,000,001 bytes, where 200,000,000 are taken'],
  ]);
});
