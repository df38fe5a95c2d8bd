import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readConfigFile, resolveSettings } from '../../src/config/load.js';
import { SETTINGS } from '../../src/config/settings.js';
import {
  parseBytes,
  parseCount,
  parseDuration,
  parseHosts,
  parseList,
  parseSwitch,
  parseTimeToLive,
} from '../../src/config/values.js';

const nothing = { flags: {}, environment: {}, file: {} };

describe('where a setting comes from', () => {
  it('is the default when nobody says otherwise', () => {
    const { settings, given } = resolveSettings(nothing);
    expect(settings.concurrency).toBe(16);
    expect(settings.maxAttempts).toBe(5);
    expect(settings.timeoutMs).toBe(300_000);
    expect(settings.graceMs).toBe(30_000);
    expect(settings.maxLineBytes).toBe(33_554_432);
    expect(given.size).toBe(0);
  });

  it('is the flag before the environment before the file', () => {
    const file = { rpm: 1 };
    const environment = { LLM_BATCH_RPM: '2' };
    expect(resolveSettings({ ...nothing, file }).settings.rpm).toBe(1);
    expect(resolveSettings({ ...nothing, file, environment }).settings.rpm).toBe(2);
    const all = resolveSettings({ flags: { rpm: '3' }, file, environment });
    expect(all.settings.rpm).toBe(3);
    expect([...all.given]).toEqual(['rpm']);
  });

  it('an empty environment variable counts as unset', () => {
    expect(resolveSettings({ ...nothing, environment: { LLM_BATCH_RPM: '' } }).settings.rpm).toBeNull();
  });

  it.each([
    [{ flags: { rpm: 'ten' } }, /Expected --rpm to be a whole number of at least 1, got "ten"/],
    [{ environment: { LLM_BATCH_TPM: '-5' } }, /environment variable LLM_BATCH_TPM/],
    [{ file: { timeoutMs: 'soon' } }, /'timeout' in llm-batch\.config\.json to be a time such as/],
  ])('a bad value is refused by the name of its place', (sources, message) => {
    expect(() => resolveSettings({ ...nothing, ...sources })).toThrow(message);
  });

  it('whatever names a file, a folder, a server or a key says so, for files that are not trusted', () => {
    const named = SETTINGS.filter(
      ({ flags }) =>
        /<(file|folder|url)>|key|header|host|any-path|as-they-are/i.test(flags) && !flags.includes('<time>'),
    );
    const silent = named.filter(({ name, reaches }) => reaches === undefined && name !== 'config');
    expect(silent.map(({ name }) => name)).toEqual([]);
    expect(named.length).toBeGreaterThan(6);
  });

  it('no two settings share a flag, a variable or a name', () => {
    for (const part of ['name', 'flags', 'environment'] as const) {
      const values = SETTINGS.map((setting) => setting[part]);
      expect(new Set(values).size).toBe(values.length);
    }
  });
});

describe('the config file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'llm-batch-config-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const path = (): string => join(folder, 'llm-batch.config.json');
  const write = (text: string): void => writeFileSync(path(), text);
  const read = () => readConfigFile(path());

  it('may be absent', () => {
    expect(read()).toBeNull();
  });

  it('gives settings by name', () => {
    write('{"rpm": 500}');
    expect(read()).toEqual({ rpm: 500 });
  });

  it('names a setting it does not know, and those it does', () => {
    write('{"rmp": 500}');
    expect(() => read()).toThrow(/'rmp' that is not known/);
  });

  it.each(['{', '[]', '"x"'])('that holds %s is refused', (text) => {
    write(text);
    expect(() => read()).toThrow(/llm-batch\.config\.json/);
  });
});

describe('values', () => {
  it.each([
    ['10', 10],
    ['10_000', 10_000],
    ['10,000', 10_000],
    ['2k', 2_000],
    ['1.5m', 1_500_000],
    [7, 7],
  ])('a count of %s is %i', (text, count) => expect(parseCount(text)).toBe(count));

  it.each(['0', '-1', '1.5', '', 'many', '1e3', null])('%s is no count', (text) => {
    expect(() => parseCount(text)).toThrow('whole number');
  });

  it.each([
    ['30s', 30_000],
    ['500ms', 500],
    ['1h30m', 5_400_000],
    ['90', 90_000],
    ['2d', 172_800_000],
    ['0s', 0],
  ])('a duration of %s is %i ms', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each(['soon', '', '-5s', '5 weeks'])('%s is no duration', (text) => {
    expect(() => parseDuration(text)).toThrow('a time such as');
  });

  it('a time to live is a second at least, since nothing could be fetched of a shorter one', () => {
    expect(parseTimeToLive('1s')).toBe(1_000);
    for (const text of ['0', '0s', '999ms']) {
      expect(() => parseTimeToLive(text)).toThrow('a time of at least 1s');
    }
    expect(() => parseTimeToLive('soon')).toThrow('a time such as');
  });

  it('hosts are names and addresses, with or without a port, and no URLs', () => {
    expect(parseHosts('hooks.internal, 10.0.0.5:8080,[::1]:9000')).toEqual([
      'hooks.internal',
      '10.0.0.5:8080',
      '[::1]:9000',
    ]);
    for (const text of ['https://hooks.internal', 'hooks.internal/path', 'user@hooks.internal', 'a b']) {
      expect(() => parseHosts(text)).toThrow('host or host:port');
    }
  });

  it.each([
    ['32MiB', 33_554_432],
    ['1gb', 1_000_000_000],
    ['512', 512],
  ])('a size of %s is %i bytes', (text, bytes) => expect(parseBytes(text)).toBe(bytes));

  it.each(['0', 'big', '5 parsecs'])('%s is no size', (text) =>
    expect(() => parseBytes(text)).toThrow('a size'),
  );

  it('a list is split at commas', () => expect(parseList('A, B,,C')).toEqual(['A', 'B', 'C']));
  it('an empty list is refused', () => expect(() => parseList(' , ')).toThrow('one name'));

  it('a switch understands the usual words', () => {
    expect(['1', 'yes', 'on', 'TRUE', true].map(parseSwitch)).toEqual([true, true, true, true, true]);
    expect(['0', 'no', 'off', 'false', false].map(parseSwitch)).toEqual([false, false, false, false, false]);
    expect(() => parseSwitch('perhaps')).toThrow('true or false');
  });
});
