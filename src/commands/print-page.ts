import type { CommandContext } from '../app/context.js';
import type { Settings } from '../config/settings.js';
import { type Appearance, appearanceOf } from '../ui/colours.js';

/** Writes lines for people to standard output, as wide and as colourful as it takes them. */
export function printPage(
  { stdout, environment, command }: CommandContext,
  { color }: Settings,
  render: (appearance: Appearance) => readonly string[],
): void {
  stdout.write(`${render(appearanceOf(stdout, environment, color, command)).join('\n')}\n`);
}
