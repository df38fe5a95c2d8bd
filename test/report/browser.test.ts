/** The report in a real browser: it draws, asks nobody, and nothing that a document says runs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM_PATH } from '../support/browser.js';
import { runInProcess } from '../support/in-process.js';
import { Workspace } from '../support/workspace.js';
import { HOSTILE, makeReportRun, RUN_NAME } from './report-run.js';

const reason = CHROMIUM_PATH === null ? ' (skipped: no Chromium is installed)' : '';

describe.skipIf(CHROMIUM_PATH === null)(`the report in Chromium${reason}`, () => {
  let workspace: Workspace;
  let browser: Browser;
  let address: string;

  beforeAll(async () => {
    workspace = new Workspace();
    await makeReportRun(workspace.storePath, workspace.path('reviews.jsonl'));
    await runInProcess(['report', '-o', 'page.html'], { folder: workspace.folder });
    address = pathToFileURL(workspace.path('page.html')).href;
    // Containers seldom have the kernel's permission for a sandbox; the page is our own.
    browser = await chromium.launch({ executablePath: CHROMIUM_PATH ?? '', args: ['--no-sandbox'] });
  });

  afterAll(async () => {
    await browser?.close();
    workspace?.remove();
  });

  interface OpenPage {
    readonly page: Page;
    readonly complaints: readonly string[];
    readonly requests: readonly string[];
  }

  async function openPage(options: Parameters<Browser['newPage']>[0] = {}): Promise<OpenPage> {
    const page = await browser.newPage(options);
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('dialog', (dialog) => complaints.push(dialog.message()));
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(address);
    await page.waitForSelector('html[data-drawn]', { state: 'attached' });
    return { page, complaints, requests };
  }

  /** How many different colours each canvas shows. */
  function coloursDrawn(page: Page): Promise<number[]> {
    return page.evaluate(`[...document.querySelectorAll('canvas')].map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    })`);
  }

  it.each(['light', 'dark'] as const)(
    'draws every chart in %s without an error or a request',
    async (colorScheme) => {
      const { page, complaints, requests } = await openPage({ colorScheme });
      expect(await page.locator('figure canvas').count()).toBe(await page.locator('figure').count());
      expect(await page.locator('figure').count()).toBe(6);
      for (const colours of await coloursDrawn(page)) expect(colours).toBeGreaterThan(3);
      expect(complaints).toEqual([]);
      expect(requests).toEqual([address]);
      await page.close();
    },
  );

  it('is dark where the system is, and light on paper', async () => {
    const backgroundOf = (page: Page): Promise<string> =>
      page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await openPage({ colorScheme: 'light' });
    const dark = await openPage({ colorScheme: 'dark' });
    expect(await backgroundOf(light.page)).not.toBe(await backgroundOf(dark.page));
    await dark.page.emulateMedia({ media: 'print' });
    expect(await backgroundOf(dark.page)).toBe('rgb(255, 255, 255)');
    await light.page.close();
    await dark.page.close();
  });

  it('draws again when the system turns dark', async () => {
    const { page } = await openPage({ colorScheme: 'light' });
    const pictureOf = (): Promise<string> => page.evaluate(`document.querySelector('canvas').toDataURL()`);
    const before = await pictureOf();
    await page.emulateMedia({ colorScheme: 'dark' });
    await expect.poll(pictureOf).not.toBe(before);
    expect(await page.locator('figure canvas').count()).toBe(6);
    await page.close();
  });

  it('runs nothing that a document, a message or a name says, and shows it as it is', async () => {
    const { page } = await openPage();
    expect(await page.title()).toBe(`Report of ${RUN_NAME}`);
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.locator('script').count()).toBe(3);
    expect(await page.locator('h1 bdi').textContent()).toBe(RUN_NAME);
    expect(await page.locator('.failure q').first().textContent()).toBe(HOSTILE);
    await page.close();
  });

  it('would not run a script even if one got in', async () => {
    const content = readFileSync(workspace.path('page.html'), 'utf8');
    const broken = workspace.path('broken.html');
    writeFileSync(broken, content.replace('<main>', `<main><script>document.title = 'broken'</script>`));
    const page = await browser.newPage();
    await page.goto(pathToFileURL(broken).href);
    await page.waitForSelector('html[data-drawn]', { state: 'attached' });
    expect(await page.title()).not.toBe('broken');
    await page.close();
  });

  it('tells each figure to who walks through a chart with the keyboard', async () => {
    const { page } = await openPage();
    const reading = (): Promise<string | null> => page.locator('#answers-reading').textContent();
    await page.locator('#answers').focus();
    await page.keyboard.press('ArrowRight');
    const first = await reading();
    expect(first).toMatch(/answers \d+, failed 0, throttled 0/);
    await page.keyboard.press('End');
    await expect.poll(reading).not.toBe(first);
    await page.close();
  });

  it('fits a narrow window without scrolling sideways', async () => {
    const { page } = await openPage({ viewport: { width: 360, height: 700 } });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
    await page.close();
  });
});
