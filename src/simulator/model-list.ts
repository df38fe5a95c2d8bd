/** GET /v1/models and GET /v1/models/{id}. */
import type { JsonObject } from '../core/json.js';
import type { SimulatorSettings } from './options.js';
import { modelNotFound, type Refusal } from './refusal.js';

const PATH = '/v1/models';
/** Listed when any model is accepted: a client that looks for the one it is about to ask finds it, as a rule. */
const ANY_MODEL = ['simulated-model', 'gpt-4o-mini'];

/** Null when the address is another's. */
export function listModels(path: string, settings: SimulatorSettings): JsonObject | Refusal | null {
  if (path === PATH) return { object: 'list', data: (settings.models ?? ANY_MODEL).map(describe) };
  if (!path.startsWith(`${PATH}/`)) return null;
  const id = path.slice(PATH.length + 1);
  const exists = settings.models === null || settings.models.includes(id);
  return exists ? describe(id) : modelNotFound(id);
}

function describe(id: string): JsonObject {
  return { id, object: 'model', created: 0, owned_by: 'simulator' };
}
