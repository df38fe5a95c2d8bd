// The compiler drops file modes; npm links dist/cli.js as a command and needs it executable.
import { chmodSync } from 'node:fs';

chmodSync(new URL('../dist/cli.js', import.meta.url), 0o755);
