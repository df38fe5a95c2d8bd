/** What an embeddings request may not say. */
import type { Json } from '../../core/json.js';
import { asksToStream, generatesNothing } from '../body-fields.js';

/** Why a request may not carry this value; null when it may. */
export function refusedValue(name: string, value: Json | undefined): string | null {
  if (name === 'encoding_format' && value !== undefined && value !== 'float') {
    return 'encoding_format must be float: vectors are kept as numbers';
  }
  if (name === 'dimensions' && value !== undefined && !(Number.isInteger(value) && Number(value) > 0)) {
    return 'dimensions must be a whole number of at least 1';
  }
  return name === 'stream' && !asksToStream(value) ? null : generatesNothing(name, 'embeddings');
}
