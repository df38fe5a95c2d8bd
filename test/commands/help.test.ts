/** What `--help` says of every command, and the page that is written from it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CommandContext } from '../../src/app/context.js';
import { buildProgram } from '../../src/commands/program.js';
import { runInProcess } from '../support/in-process.js';

const ONLY_TO_LOOK_AT = { stdout: process.stdout } as unknown as CommandContext;
const ROOT = join(import.meta.dirname, '..', '..');

function helpOf(...names: readonly string[]): Promise<string> {
  return runInProcess([...names, '--help'], { folder: tmpdir() }).then(({ stdout }) => stdout);
}

/** Only what `--help` lists. */
function commandNames(): string[] {
  const { command } = buildProgram(ONLY_TO_LOOK_AT);
  return command
    .createHelp()
    .visibleCommands(command)
    .map((visible) => visible.name());
}

describe.each(commandNames())('%s --help', (name) => {
  it('says in a sentence what the command does', async () => {
    const [usage = '', blank, description = ''] = (await helpOf(name)).split('\n');
    expect(usage).toMatch(new RegExp(`^Usage: llm-batch ${name}\\b`));
    expect(blank).toBe('');
    expect(description.length).toBeGreaterThan(15);
  });

  it('has an example of the command itself', async () => {
    const [, examples = ''] = (await helpOf(name)).split('\nExamples:\n');
    expect(examples).toMatch(new RegExp(`(^|\\s|\\()llm-batch ${name}( |$)`, 'm'));
  });

  it('shows no default in the notation of the program', async () => {
    expect(await helpOf(name)).not.toContain('(default: []');
  });

  it('explains every flag and argument', async () => {
    const { command } = buildProgram(ONLY_TO_LOOK_AT);
    const found = command.commands.find((candidate) => candidate.name() === name);
    for (const { flags, description } of found?.options ?? []) {
      expect(description, flags).not.toBe('');
    }
    for (const argument of found?.registeredArguments ?? []) {
      expect(argument.description, argument.name()).not.toBe('');
    }
  });
});

it('docs/cli.md is what the help says; `npm run docs:cli` writes it', () => {
  const written = execFileSync(process.execPath, [join(ROOT, 'scripts', 'write-cli-docs.mjs'), '-'], {
    encoding: 'utf8',
  });
  expect(readFileSync(join(ROOT, 'docs', 'cli.md'), 'utf8')).toBe(written);
});
