/**
 * Writes docs/cli.md from the help of every command, or with `-` to standard output. A test compares the two.
 */
import { writeFileSync } from 'node:fs';
import { buildProgram } from '../build/commands/program.js';

const HELP_COLUMNS = 100;

let written = '';
const output = {
  columns: HELP_COLUMNS,
  write(text) {
    written += text;
  },
};
const context = { stdout: output, stderr: output, environment: {}, command: (text) => text };

/** What `llm-batch <name> --help` prints. */
async function helpOf(...names) {
  written = '';
  // commander ends a program that has shown its help with an error of its own.
  await buildProgram(context)
    .run(['node', 'llm-batch', ...names, '--help'])
    .catch((error) => {
      if (error.exitCode !== 0) throw error;
    });
  return written.trimEnd();
}

const { command: program } = buildProgram(context);
const commands = program.createHelp().visibleCommands(program);

const parts = [
  '# Commands and flags',
  'Written by `npm run docs:cli` from `llm-batch <command> --help`; do not edit.',
  commands
    .map((command) => `- [\`${command.name()}\`](#${command.name()}): ${command.description()}`)
    .join('\n'),
  `## llm-batch\n\n\`\`\`text\n${await helpOf()}\n\`\`\``,
];
for (const command of commands) {
  parts.push(`## ${command.name()}\n\n\`\`\`text\n${await helpOf(command.name())}\n\`\`\``);
}
const text = `${parts.join('\n\n')}\n`;

if (process.argv[2] === '-') process.stdout.write(text);
else writeFileSync(new URL('../docs/cli.md', import.meta.url), text);
