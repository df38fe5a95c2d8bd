// Writes docs/openapi.json, what the service says of itself at /openapi.json; with `-` to standard output.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const { createHttpServer } = await import(join(ROOT, 'build', 'server', 'http-server.js'));

const { allRoutes } = await import(join(ROOT, 'build', 'server', 'routes', 'all-routes.js'));

const app = createHttpServer({
  ...{ routes: allRoutes({}, {}, async () => ({})), tokens: [], mostBodyBytes: 1 },
  probe: async () => undefined,
  onUnexpected: () => undefined,
});
const { payload } = await app.inject({ url: '/openapi.json' });
const text = `${JSON.stringify(JSON.parse(payload), null, 2)}\n`;
if (process.argv[2] === '-') process.stdout.write(text);
else writeFileSync(join(ROOT, 'docs', 'openapi.json'), text);
