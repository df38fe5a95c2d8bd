/** Sentences that are told while a run or a worker is at work. */
import { expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import { appearanceOf } from '../../src/ui/colours.js';
import { Display, type DisplayOptions } from '../../src/ui/display.js';
import { WorkerDisplay } from '../../src/ui/worker-display.js';
import { FakeClock } from '../support/fake-clock.js';
import { Log, Screen } from './screen.js';

const WARNING: RunEvent = {
  type: 'warning',
  message: 'The key goes over plain http to a server that is not here.',
};

function optionsFor(stream: Screen | Log): DisplayOptions {
  return {
    ...{ stream, environment: {}, appearance: appearanceOf(stream, {}, true), clock: new FakeClock() },
    ...{ quiet: false, verbose: false, workingFolder: '/', readingShownAfterMs: 0 },
  };
}

it('a notice is broken at words on a terminal, beside a bar and without one', () => {
  const screen = new Screen(30);
  new Display(optionsFor(screen)).tell(WARNING);
  expect(screen.text).toBe('The key goes over plain http\nto a server that is not here.');
  const besideBar = new Screen(30);
  new WorkerDisplay(optionsFor(besideBar)).tell(WARNING, 'docs');
  expect(besideBar.text).toContain('docs: The key goes over plain\nhttp to a server that is not\nhere.\n');
  expect([...screen.tooWide, ...besideBar.tooWide]).toEqual([]);
});

it('what a service says of itself stands above its line, which goes on', () => {
  const screen = new Screen(60);
  new WorkerDisplay(optionsFor(screen)).say('Listening on http://127.0.0.1:8080. Ctrl-C ends it.');
  expect(screen.text).toBe(
    'Listening on http://127.0.0.1:8080. Ctrl-C ends it.\nwaiting for work · 0 answered',
  );
});

it('a notice is one line of a log, however long', () => {
  const log = new Log();
  new Display(optionsFor(log)).tell(WARNING);
  new WorkerDisplay(optionsFor(log)).tell(WARNING, 'docs');
  expect(log.lines).toEqual([WARNING.message, `docs: ${WARNING.message}`]);
});
