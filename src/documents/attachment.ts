/** A part of a prompt that is no text: an image or a PDF, from a local file, a URL or a data URL. */
import { basename } from 'node:path';
import type { ExactJson } from '../core/exact-json.js';
import { showName } from '../core/field.js';
import { type ImageSize, sizeOfDataUrl } from '../core/image-head.js';
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import type { LineProblem } from '../input/bad-line.js';
import {
  type AttachedFile,
  type ImagePlace,
  inspectFile,
  loadFile,
  MOST_FILE_BYTES,
  showBytes,
} from './attached-file.js';

export interface Attachment {
  readonly kind: 'image' | 'pdf';
  /** As it stands in the body; of a file, what holds the place of its bytes until the call is sent. */
  readonly url: string;
  /** In pixels; null where it is not known. */
  readonly size: ImageSize | null;
  /** Of the image or the PDF itself, not of its base64; 0 where it is not known. */
  readonly bytes: number;
  /** Null: `url` is sent as it is. */
  readonly file: AttachedFile | null;
  /** The document's field that names it, for messages. */
  readonly field: string;
  /**
   * What the request's hash covers. Of a file its path as given, its size and its time of change, as make and rsync
   * tell a file that was edited: to hash what is in it, every import would have to read every picture.
   */
  readonly identity: string;
}

/**
 * The attachments that a field's value means: one, or one for each member of a list.
 */
export function attachmentsOf(
  field: string,
  value: ExactJson,
  place: ImagePlace,
): readonly Attachment[] | LineProblem {
  const values = Array.isArray(value) ? value : [value];
  if (value === null || values.length === 0) return unusable(field, 'is empty');
  const attachments: Attachment[] = [];
  for (const [index, each] of values.entries()) {
    const name = Array.isArray(value) ? `${field}.${index}` : field;
    const attachment = attachmentOf(name, each, place);
    if ('reason' in attachment) return attachment;
    attachments.push(attachment);
  }
  return attachments;
}

function attachmentOf(field: string, value: ExactJson, place: ImagePlace): Attachment | LineProblem {
  if (value === null || value === '') return unusable(field, 'is empty');
  if (typeof value !== 'string') {
    return unusable(field, 'must be a path, an http(s) URL, a data: URL or a list of these');
  }
  if (/^https?:\/\//i.test(value)) {
    return { kind: 'image', url: value, size: null, bytes: 0, file: null, field, identity: value };
  }
  if (/^data:/i.test(value)) return { ...attachedUrl(value), field, identity: value };
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(value)?.[1];
  if (scheme !== undefined) {
    return unusable(
      field,
      `names a ${scheme}: URL, and only http(s): and data: ones can be sent; fetch the file and name its path`,
    );
  }
  const file = inspectFile(value, place);
  if (typeof file === 'string') return unusable(field, file);
  const { path, mediaType, size, bytes, changedAtMs } = file;
  return {
    kind: mediaType === 'application/pdf' ? 'pdf' : 'image',
    url: `data:${mediaType};base64,… (${path}, ${showBytes(bytes)})`,
    size,
    bytes,
    file,
    field,
    identity: `${path}\n${bytes}\n${changedAtMs}`,
  };
}

function attachedUrl(url: string): Omit<Attachment, 'field' | 'identity'> {
  const kind = /^data:application\/pdf[;,]/i.test(url) ? 'pdf' : 'image';
  const size = kind === 'pdf' ? null : sizeOfDataUrl(url);
  const bytes = Math.floor((Math.max(0, url.length - url.indexOf(',') - 1) * 3) / 4);
  return { kind, url, size, bytes, file: null };
}

function unusable(field: string, what: string): LineProblem {
  return { reason: `the image field ${showName(field)} ${what}`, field };
}

/** What all files of one request may hold together: the cap of a single one is one of the whole request too. */
export function refuseTooMuch(attachments: readonly Attachment[]): LineProblem | null {
  const bytes = attachments.reduce((sum, { file }) => sum + (file?.bytes ?? 0), 0);
  const [first] = attachments;
  if (first === undefined || bytes <= MOST_FILE_BYTES) return null;
  return unusable(
    first.field,
    `and others name files of ${showBytes(bytes)} together, over the ${showBytes(MOST_FILE_BYTES)} that a request may carry`,
  );
}

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

/**
 * Puts the files into a body, where until now something held their places.
 * @returns the body to send, or what is wrong with a file by now
 */
export async function loadAttachments(
  bodyJson: string,
  attachments: readonly Attachment[],
): Promise<string | LineProblem> {
  let loaded = bodyJson;
  const seen = new Set<string>();
  for (const { kind, file, url, field } of attachments) {
    if (file === null || seen.has(url)) continue;
    seen.add(url);
    const data = await loadFile(file);
    if (typeof data !== 'string') return unusable(field, data.problem);
    const name = kind === 'image' ? 'url' : 'file_data';
    // Inside a text its quotes would be escaped, so only the field itself can be meant.
    loaded = loaded.replaceAll(`"${name}":${JSON.stringify(url)}`, () => `"${name}":"${data}"`);
  }
  return loaded;
}
