/** Looks at good documents for what their user may not have meant; said before the first call, and by `check`. */
import type { Remark } from '../core/remark.js';
import type { ParsedDocument } from './document.js';
import type { RequestSettings } from './request.js';
import { compileTemplate, type Template } from './template.js';

/** Tags of other template languages: Jinja, ERB. */
const TAG = /\{%[^{%]*%\}|<%[^<%]*%>/;

export class Remarks {
  readonly #settings: RequestSettings;
  readonly #prompt: Template | null;
  #isTemplateSeen = false;
  #found: Remark[] = [];

  constructor(settings: RequestSettings) {
    this.#settings = settings;
    this.#prompt =
      settings.promptTemplate === null ? null : compileTemplate(settings.promptTemplate, 'prompt');
  }

  see(line: number, { form, fields, request }: ParsedDocument): void {
    if (form !== 'record') {
      if (this.#prompt !== null) {
        const message = 'is a whole request, for which the prompt is not used';
        this.#found.push({ kind: 'template_unused', line, message });
      }
      if (request !== null && endsWithAnswer(request['messages'])) {
        this.#found.push({ kind: 'assistant_last', line, message: 'ends with a message of the assistant' });
      }
      return;
    }
    const empty = this.#prompt?.emptyFieldOf(fields) ?? null;
    if (empty !== null) this.#found.push({ kind: 'empty_field', line, message: `${empty} is empty or null` });
    if (this.#isTemplateSeen) return;
    this.#isTemplateSeen = true;
    const foreign = foreignSyntax(this.#settings, Object.keys(fields));
    if (foreign !== null) {
      this.#found.push({ kind: 'foreign_template', line, message: `${foreign} is sent as it stands` });
    }
  }

  /** Those since the last time. */
  take(): Remark[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }
}

function endsWithAnswer(messages: unknown): boolean {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : null;
  return typeof last === 'object' && last !== null && 'role' in last && last.role === 'assistant';
}

/** What of a template looks as if it should be filled in, and is not; null where nothing does. */
function foreignSyntax(
  { promptTemplate, systemTemplate }: RequestSettings,
  fields: readonly string[],
): string | null {
  for (const template of [promptTemplate, systemTemplate]) {
    const text = (template ?? '').replace(/\\?\{\{[^{}]*\}\}/g, '');
    const tag = TAG.exec(text)?.[0];
    if (tag !== undefined) return tag.length > 40 ? `${tag.slice(0, 39)}…` : tag;
    for (const [written, name = ''] of text.matchAll(/\$?\{\s*([\p{L}_][\p{L}\p{N}_.]*)\s*\}/gu)) {
      if (fields.includes(name)) return written;
    }
  }
  return null;
}
