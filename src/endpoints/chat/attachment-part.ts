/** Images and PDFs as parts of a chat completion's message. */
import { basename } from 'node:path';
import { type Attachment, attachedUrl } from '../../core/attachment.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';

/** The part of a chat completion's message. */
export function attachmentPart({ kind, url, file }: Attachment): JsonObject {
  if (kind === 'image') return { type: 'image_url', image_url: { url } };
  const filename = file === null ? 'document.pdf' : basename(file.absolutePath);
  return { type: 'file', file: { filename, file_data: url } };
}

/** The attachments of messages that came whole, parts in the shape of chat completions. */
export function attachmentsIn(messages: readonly Json[]): Attachment[] {
  const attachments: Attachment[] = [];
  for (const message of messages) {
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

/** @param data URL that takes the place of the attachment's own */
export function placeFile(bodyJson: string, { kind, url }: Attachment, data: string): string {
  const name = kind === 'image' ? 'url' : 'file_data';
  // Inside a text its quotes would be escaped, so only the field itself can be meant.
  return bodyJson.replaceAll(`"${name}":${JSON.stringify(url)}`, () => `"${name}":"${data}"`);
}
