import { describe, expect, it } from 'vitest';
import { embeddedJson, html } from '../../src/report/html.js';

describe('html', () => {
  it('escapes what is filled in, in text and in attributes', () => {
    const hostile = `<b>&"'`;
    expect(html`<p title="${hostile}">${hostile}</p>`.text).toBe(
      '<p title="&lt;b&gt;&amp;&quot;&#39;">&lt;b&gt;&amp;&quot;&#39;</p>',
    );
  });

  it('takes markup as it is, alone and in lists, and leaves null out', () => {
    const items = ['a', '<'].map((item) => html`<li>${item}</li>`);
    expect(html`<ul>${items}${null}${0}</ul>`.text).toBe('<ul><li>a</li>\n<li>&lt;</li>0</ul>');
  });
});

describe('embedded JSON', () => {
  it('cannot end its script element, and reads back as it was', () => {
    const value = { name: '</script><!--<script>', line: '\u2028', amounts: [1.5, 0] };
    const { text } = embeddedJson(value);
    expect(text).not.toContain('<');
    expect(JSON.parse(text)).toEqual(value);
  });
});
