/** What every page begins with: it needs no other file and no network, and runs nothing but the scripts it names. */
import { createHash } from 'node:crypto';
import { html, Markup } from './html.js';
import { PAGE_STYLE } from './page-style.js';

export interface PageHead {
  readonly title: string;
  /** CSS for parts that other pages do not have, before or after what all have. */
  readonly styleBefore?: string;
  readonly styleAfter?: string;
  /** The text of each script that may run. */
  readonly scripts: readonly string[];
  /** They may ask the server that the page came from. */
  readonly connects?: boolean;
}

export function pageHead({
  title,
  styleBefore = '',
  styleAfter = '',
  scripts,
  connects = false,
}: PageHead): Markup {
  return html`<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="llm-batch">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="${contentPolicy(scripts)}${connects ? "; connect-src 'self'" : ''}">
<title>${title}</title>
<style>${new Markup([styleBefore, PAGE_STYLE, styleAfter].filter((style) => style !== '').join('\n'))}</style>
</head>`;
}

/** Nothing but these scripts runs and nothing is loaded, whatever a document may have brought in. */
function contentPolicy(scripts: readonly string[]): string {
  const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'";
  if (scripts.length === 0) return policy;
  const hashes = scripts.map((script) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`);
  return `${policy}; script-src ${hashes.join(' ')}`;
}
