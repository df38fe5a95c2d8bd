/** The script of the service's page, as it runs in the browser: follows the service's events and keeps a row for each run. */
export const OVERVIEW_SCRIPT = `
'use strict';
const TOKEN = 'llm-batch-token';
const rows = new Map();
const element = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat('en');
const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 4 });

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token === null ? {} : { authorization: 'Bearer ' + token };
}

function say(text, isBad) {
  element('state').textContent = text;
  element('state').className = isBad ? 'banner bad' : 'hint';
}

function askForToken(text) {
  element('login').hidden = false;
  say(text, true);
  element('token').focus();
}

async function follow() {
  for (let waitMs = 1000; ; waitMs = Math.min(waitMs * 2, 30000)) {
    try {
      const answer = await fetch('/v1/events', { headers: headers() });
      if (answer.status === 401) return askForToken('Give one of the tokens of this service.');
      if (!answer.ok) throw new Error('The service answers ' + answer.status + '.');
      waitMs = 500;
      await read(answer.body.getReader());
    } catch {}
    say('The service does not answer; asking again.', true);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

async function read(reader) {
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const events = text.split('\\n\\n');
    text = events.pop();
    for (const event of events) if (event.startsWith('data: ')) show(JSON.parse(event.slice(6)));
  }
}

function show({ runs, left_out: leftOut }) {
  element('login').hidden = true;
  const body = element('runs');
  const seen = new Set();
  runs.forEach((run, index) => {
    seen.add(run.id);
    const row = rows.get(run.id) ?? newRow(run.id);
    fill(row, run);
    if (body.children[index] !== row.line) body.insertBefore(row.line, body.children[index] ?? null);
  });
  for (const [id, { line }] of rows) {
    if (seen.has(id)) continue;
    line.remove();
    rows.delete(id);
  }
  const active = runs.filter(({ status }) => status === 'open').length;
  element('table').hidden = runs.length === 0;
  const older = leftOut > 0 ? ', and ' + numbers.format(leftOut) + ' older ones' : '';
  say(runs.length === 0 ? 'No run yet.' : numbers.format(runs.length) + ' runs, ' + numbers.format(active) + ' open' + older + '.', false);
}

function newRow(id) {
  const line = element('row').content.firstElementChild.cloneNode(true);
  const part = (name) => line.querySelector('[data-part="' + name + '"]');
  const row = { line, id: part('id'), state: part('state'), meter: part('meter'), progress: part('progress'), rate: part('rate'), cost: part('cost'), failures: part('failures'), retry: part('retry') };
  row.id.textContent = id;
  row.retry.setAttribute('aria-label', 'Try the failed documents of ' + id + ' again');
  row.retry.addEventListener('click', () => void retry(id, row.retry));
  rows.set(id, row);
  return row;
}

function fill(row, run) {
  const { total, completed, failed, cancelled } = run.documents;
  const done = completed + failed + cancelled;
  row.state.textContent = run.halt_reason === null ? run.status : run.status + ': ' + run.halt_reason;
  row.state.className = 'status ' + (run.status === 'finished' ? 'finished' : '');
  row.meter.max = Math.max(1, total);
  row.meter.value = done;
  row.meter.textContent = numbers.format(done) + ' of ' + numbers.format(total);
  row.progress.textContent = row.meter.textContent;
  row.rate.textContent = run.documents_per_minute === 0 ? '' : numbers.format(run.documents_per_minute) + ' a minute';
  row.cost.textContent = money.format(run.cost_usd);
  row.failures.textContent = Object.entries(run.failed_by_kind).map(([kind, count]) => numbers.format(count) + ' ' + kind).join(', ');
  row.retry.hidden = failed === 0;
}

async function retry(id, button) {
  button.disabled = true;
  const answer = await fetch('/v1/runs/' + encodeURIComponent(id) + '/retry', { method: 'POST', headers: headers() }).catch(() => null);
  button.disabled = false;
  if (answer === null || !answer.ok) say('The documents of ' + id + ' could not be put back.', true);
}

element('login').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, element('token').value.trim());
  element('login').hidden = true;
  say('Asking the service.', false);
  void follow();
});
void follow();
`;
