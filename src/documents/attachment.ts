/** From what a document's field says to an attachment, and from there to the body that is sent. */
import { type Attachment, attachedUrl, type ImagePlace } from '../core/attachment.js';
import type { ExactJson } from '../core/exact-json.js';
import { showName } from '../core/field.js';
import type { LineProblem } from '../core/line-problem.js';
import type { PlaceFile } from '../endpoints/endpoint.js';
import { inspectFile, loadFile, MOST_FILE_BYTES, showBytes } from './attached-file.js';

/**
 * The attachments that a field's value means: one, or one for each member of a list.
 * @param place null: files of this machine are not taken, nor looked at
 */
export function attachmentsOf(
  field: string,
  value: ExactJson,
  place: ImagePlace | null,
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

function attachmentOf(field: string, value: ExactJson, place: ImagePlace | null): Attachment | LineProblem {
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
  if (place === null) return unusable(field, 'must be an http(s) URL or a data: URL here');
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

/**
 * Puts the files into a body, where until now something held their places.
 * @param place writes one into it, as the endpoint does
 * @returns the body to send, or what is wrong with a file by now
 */
export async function loadAttachments(
  bodyJson: string,
  attachments: readonly Attachment[],
  place: PlaceFile,
): Promise<string | LineProblem> {
  let loaded = bodyJson;
  const seen = new Set<string>();
  for (const attachment of attachments) {
    const { file, url, field } = attachment;
    if (file === null || seen.has(url)) continue;
    seen.add(url);
    const data = await loadFile(file);
    if (typeof data !== 'string') return unusable(field, data.problem);
    loaded = place(loaded, attachment, data);
  }
  return loaded;
}
