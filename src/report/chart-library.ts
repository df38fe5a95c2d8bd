/** uPlot, which draws the charts: its own minified build, copied into the page so that it needs no network. */
import { readFile } from 'node:fs/promises';

export interface ChartLibrary {
  readonly script: string;
  readonly style: string;
}

export async function readChartLibrary(): Promise<ChartLibrary> {
  const [script, style] = await Promise.all(
    ['uplot/dist/uPlot.iife.min.js', 'uplot/dist/uPlot.min.css'].map((file) =>
      readFile(new URL(import.meta.resolve(file)), 'utf8'),
    ),
  );
  if (script === undefined || style === undefined || /<\/script|<!--/i.test(script)) {
    throw new Error('uPlot cannot be put into a page.');
  }
  return { script, style };
}
