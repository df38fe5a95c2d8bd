/** Which setting somebody means who calls it by another name. */
import { SETTINGS, type SettingDefinition, type Settings } from './settings.js';

/** What other programs call it, without dashes and in lower case. */
const FAMILIAR: Readonly<Record<string, keyof Settings>> = {
  apibase: 'baseUrl',
  apikey: 'apiKeyEnv',
  apiurl: 'baseUrl',
  batch: 'remote',
  batchsize: 'groupMax',
  budget: 'maxCostMicroUsd',
  endpointurl: 'baseUrl',
  host: 'baseUrl',
  instructions: 'system',
  jobs: 'concurrency',
  key: 'apiKeyEnv',
  maxbudget: 'maxCostMicroUsd',
  maxretries: 'maxAttempts',
  maxworkers: 'concurrency',
  numworkers: 'concurrency',
  parallel: 'concurrency',
  parallelism: 'concurrency',
  requestsperminute: 'rpm',
  responseformat: 'schema',
  retries: 'maxAttempts',
  systemprompt: 'system',
  template: 'prompt',
  threads: 'concurrency',
  tokensperminute: 'tpm',
  url: 'baseUrl',
  workers: 'concurrency',
};

/** More letters than this apart, and another word is meant. */
const MOST_LETTERS_APART = 2;

/** The setting that a configuration's key is for, `maxCost`, `max-cost` or `max_cost`; null where it is for none. */
export function settingOfKey(key: string): SettingDefinition | null {
  const plain = plainName(key);
  const isMeant = (each: SettingDefinition): boolean => [each.key, each.name].map(plainName).includes(plain);
  return SETTINGS.find(isMeant) ?? null;
}

/** What other programs call so; null where no setting is meant. @param said a flag without dashes in front, or a key */
export function familiarSetting(said: string): SettingDefinition | null {
  const plain = plainName(said);
  const name = Object.hasOwn(FAMILIAR, plain) ? FAMILIAR[plain] : undefined;
  return SETTINGS.find((each) => each.name === name) ?? null;
}

/** The one of these names that somebody meant who mistyped it; null where none is near. */
export function nearest(said: string, names: readonly string[]): string | null {
  const distances = names.map((name) => ({ name, apart: lettersApart(plainName(said), plainName(name)) }));
  const [best] = distances.sort((one, other) => one.apart - other.apart);
  return best !== undefined && best.apart <= Math.min(MOST_LETTERS_APART, said.length / 3) ? best.name : null;
}

function plainName(name: string): string {
  return name.replace(/[-_]/g, '').toLowerCase();
}

/** Letters to be put in, left out or changed to make one of the other. */
function lettersApart(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= other.length; to += 1) {
      const changed = (row[to - 1] ?? 0) + (one[at - 1] === other[to - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
