/** `trust`: the settings that this folder brings with it may name servers, keys and files outside it. */
import type { Command } from 'commander';
import { CONFIG_FILE_NAME } from '../config/load.js';
import { TrustRecord } from '../config/trust-record.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import type { Action, Verb } from './action.js';
import { folderFiles } from './folder-settings.js';

const EXAMPLES = `
Examples:
  cat llm-batch.config.json && llm-batch trust

A folder may have come from anywhere. Until its files are trusted, \`run\`, \`resume\` and \`doctor\` ask before they use a server,
a key's variable or a file outside the folder that its llm-batch.config.json names, or a key in its .env; without a
terminal they refuse. Trust ends when what those files say of such things changes.`;

export function registerTrust(program: Command, action: Action): void {
  program
    .command('trust')
    .description('trust the llm-batch.config.json and .env of this folder, as they are now')
    .addHelpText('after', EXAMPLES)
    .action(action(trust));
}

async function trust({ context }: Verb): Promise<ExitCode> {
  const record = new TrustRecord(context.environment);
  const files = folderFiles(context.workingFolder);
  if (files.length === 0) {
    throw usageError(
      'TRUST_NOTHING',
      `There is neither ${CONFIG_FILE_NAME} nor .env in ${context.workingFolder}.`,
      'change to the folder whose settings are to be trusted',
    );
  }
  for (const { path, fact, says } of files) {
    if (!record.remember(fact)) {
      throw usageError(
        'TRUST_UNWRITABLE',
        `It cannot be noted in ${record.folder ?? 'a folder of this user'} that ${path} is trusted.`,
        'set XDG_STATE_HOME to a folder that you may write, or name the file at each call: --config',
      );
    }
    const outside = says === '' ? 'it names nothing outside its folder' : says;
    context.stderr.write(`${printable(`${path} is trusted: ${outside}`)}\n`);
  }
  return EXIT_CODES.completed;
}
