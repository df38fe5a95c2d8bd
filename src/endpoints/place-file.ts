/** Puts a file's bytes into a body. */
import type { Attachment } from '../core/attachment.js';
import type { PlaceFile } from './endpoint.js';

/** @param names of the fields that hold an attachment's URL */
export function placeFileAs(names: Readonly<Record<Attachment['kind'], string>>): PlaceFile {
  return (bodyJson, { kind, url }, data) => {
    const name = names[kind];
    // Inside a text its quotes would be escaped, so only the field itself can be meant.
    return bodyJson.replaceAll(`"${name}":${JSON.stringify(url)}`, () => `"${name}":"${data}"`);
  };
}
