/** What of good documents may not be meant: each is told once, with the first line that it is of. */
import { describe, expect, it } from 'vitest';
import { createDocumentParser } from '../../src/documents/document.js';
import { Remarks } from '../../src/documents/remarks.js';
import type { RequestSettings } from '../../src/documents/request.js';

function remarksOn(settings: Partial<RequestSettings>, ...documents: readonly object[]): string[] {
  const all: RequestSettings = {
    ...{ model: null, promptTemplate: null, systemTemplate: null, parameters: {}, idField: null },
    ...{ requestsAsTheyAre: true },
    ...settings,
  };
  const remarks = new Remarks(all);
  const parse = createDocumentParser(all);
  for (const [index, document] of documents.entries()) {
    const parsed = parse(JSON.stringify(document));
    if (!('reason' in parsed)) remarks.see(index + 1, parsed);
  }
  return remarks.take().map(({ kind, line, message }) => `${kind} ${line}: ${message}`);
}

const REVIEW = { text: 'Good.', stars: 4 };

describe('a prompt', () => {
  it.each([
    ['Judge {text}: {{text}}', 'foreign_template 1: {text} is sent as it stands'],
    [`Judge \${stars}: {{text}}`, `foreign_template 1: \${stars} is sent as it stands`],
    ['{% if stars %}{{text}}{% endif %}', 'foreign_template 1: {% if stars %} is sent as it stands'],
    ['<%= text %> {{text}}', 'foreign_template 1: <%= text %> is sent as it stands'],
  ])('%s has marks that are not filled in', (promptTemplate, told) => {
    expect(remarksOn({ promptTemplate }, REVIEW, REVIEW)).toEqual([told]);
  });

  it('is looked at in the system message too', () => {
    expect(remarksOn({ promptTemplate: '{{text}}', systemTemplate: 'For {stars}' }, REVIEW)).toHaveLength(1);
  });

  it.each([
    ['{{text}}'],
    ['Write JSON such as {"label": "x"}: {{text}}'],
    ['Write {label}: {{text}}'],
    ['\\{{text}} {{text}}'],
    ['{{stars|default:"-"}} {{text}}'],
  ])('%s has none', (promptTemplate) => {
    expect(remarksOn({ promptTemplate }, REVIEW)).toEqual([]);
  });
});

it('documents with nothing in a field of the prompt are told, but for those that have a default', () => {
  const documents = [REVIEW, { text: '', stars: 1 }, { text: 'x', stars: null }];
  expect(remarksOn({ promptTemplate: '{{text}} {{stars}}' }, ...documents)).toEqual([
    'empty_field 2: text is empty or null',
    'empty_field 3: stars is empty or null',
  ]);
  expect(remarksOn({ promptTemplate: '{{text|default:"-"}} {{stars|default:"?"}}' }, ...documents)).toEqual(
    [],
  );
});

it('requests that end with an answer, as files for fine-tuning do, are told', () => {
  const user = { role: 'user', content: 'Hi.' };
  const assistant = { role: 'assistant', content: 'Hello.' };
  expect(remarksOn({}, { messages: [user] }, { messages: [user, assistant] })).toEqual([
    'assistant_last 2: ends with a message of the assistant',
  ]);
});
