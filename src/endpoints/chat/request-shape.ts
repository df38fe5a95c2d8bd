/** What the bodies of chat completions are like. */
import { basename } from 'node:path';
import { type Attachment, attachedUrl } from '../../core/attachment.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { AskedOfAll, RecordShape } from '../record-request.js';

export const CHAT_SHAPE: RecordShape = {
  endpoint: 'chat',
  contentField: 'messages',
  outputCapOf,
  textOf: textOfMessages,
  attachmentsIn,
  inputsOf: () => 1,
  isGrouped: false,
  around,
  contentOf: (parts) =>
    parts.map((part) => (typeof part === 'string' ? textPart(part) : attachmentPart(part))),
  refuseAttachments: () => null,
};

/** One is the newer name of the other, and a server refuses both together. */
export const OUTPUT_CAPS = ['max_completion_tokens', 'max_tokens'];

/** The cap that a body states, null when it states none. */
function outputCapOf(body: JsonObject): number | null {
  const cap = OUTPUT_CAPS.map((name) => body[name]).find((value) => value !== undefined && value !== null);
  return typeof cap === 'number' && cap >= 0 ? cap : null;
}

/** Newer models call it `developer`. */
export function isSystemMessage(message: Json): boolean {
  return isJsonObject(message) && (message['role'] === 'system' || message['role'] === 'developer');
}

export function systemMessage(text: string): JsonObject {
  return { role: 'system', content: text };
}

function around({ model, systemText, parameters }: AskedOfAll): readonly [before: string, after: string] {
  const systemJson = systemText === null ? '' : `${JSON.stringify(systemMessage(systemText))},`;
  const parametersJson = JSON.stringify(parameters).slice(1);
  return [
    `{"model":${JSON.stringify(model)},"messages":[${systemJson}{"role":"user","content":`,
    parametersJson === '}' ? '}]}' : `}],${parametersJson}`,
  ];
}

export function textPart(text: string): JsonObject {
  return { type: 'text', text };
}

export function attachmentPart({ kind, url, file }: Attachment): JsonObject {
  return kind === 'image'
    ? { type: 'image_url', image_url: { url } }
    : { type: 'file', file: { filename: fileNameOf(file), file_data: url } };
}

/** What a PDF is called to the server. */
export function fileNameOf(file: Attachment['file']): string {
  return file === null ? 'document.pdf' : basename(file.absolutePath);
}

export function textOfMessages({ messages }: JsonObject): string {
  let text = '';
  for (const message of asList(messages)) {
    const content = isJsonObject(message) ? message['content'] : undefined;
    const parts = Array.isArray(content) ? content : [content];
    for (const part of parts) {
      const piece = isJsonObject(part) ? part['text'] : part;
      if (typeof piece === 'string') text += text === '' ? piece : `\n${piece}`;
    }
  }
  return text;
}

/** The attachments of messages that came whole. */
export function attachmentsIn({ messages }: JsonObject): Attachment[] {
  const attachments: Attachment[] = [];
  for (const message of asList(messages)) {
    const content = isJsonObject(message) ? message['content'] : null;
    for (const part of Array.isArray(content) ? content : []) {
      const url = isJsonObject(part) ? urlOf(part) : null;
      if (url !== null) attachments.push({ ...attachedUrl(url), field: 'messages', identity: url });
    }
  }
  return attachments;
}

function urlOf({ type, image_url: image, file }: JsonObject): string | null {
  const url =
    type === 'image_url' && isJsonObject(image)
      ? image['url']
      : type === 'file' && isJsonObject(file)
        ? file['file_data']
        : null;
  return typeof url === 'string' ? url : null;
}

function asList(messages: Json | undefined): readonly Json[] {
  return Array.isArray(messages) ? messages : [];
}
