/** Several documents in one call: their texts as one array of inputs. */
import { digest } from '../../core/digest.js';
import { canonicalText } from '../../core/exact-json.js';
import type { JsonObject } from '../../core/json.js';
import type { Grouping } from '../endpoint.js';

/** OpenAI's API reference, embeddings: "array must be 2048 dimensions or less", "300,000 tokens summed". */
export const GROUPING: Grouping = {
  mostInputs: 2_048,
  mostTokens: 300_000,
  join(bodies) {
    const parsed = bodies.map((body) => JSON.parse(body) as JsonObject);
    return JSON.stringify({ ...parsed[0], input: parsed.map(({ input }) => input) });
  },
};

/** @param frame of a body: all of it but the input */
export function groupKeyOf(frame: JsonObject): string {
  return digest(`embeddings${canonicalText(frame)}`);
}
