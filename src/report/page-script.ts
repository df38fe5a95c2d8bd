/**
 * The page's own script: draws what is in `#chart-data` with uPlot, in the colours of the style sheet. It runs in the
 * reader's browser, so it is text here; the browser tests run it.
 */
export const PAGE_SCRIPT = String.raw`
'use strict';
(() => {
  const charts = JSON.parse(document.getElementById('chart-data').textContent);
  const HEIGHT = 220;
  let plots = [];

  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const two = (number) => String(number).padStart(2, '0');

  function amountText(value, unit) {
    if (value === null || value === undefined) return '–';
    if (unit === 'money') {
      const dollars = value / 1e6;
      return '$' + (dollars >= 100 ? dollars.toFixed(0) : dollars >= 0.1 || dollars === 0 ? dollars.toFixed(2) : String(Number(dollars.toPrecision(2))));
    }
    for (const [size, letter] of [[1e9, 'B'], [1e6, 'M'], [1e3, 'k']]) {
      if (Math.abs(value) >= size * (unit === 'count' ? 10 : 1)) return String(Number((value / size).toPrecision(3))) + letter;
    }
    return String(Math.round(value * 100) / 100);
  }

  function durationText(ms) {
    if (ms < 999.5) return String(Number(ms.toPrecision(2))) + ' ms';
    if (ms < 59950) return String(Number((ms / 1000).toPrecision(2))) + ' s';
    return ms < 3597000 ? String(Number((ms / 60000).toPrecision(2))) + ' min' : String(Number((ms / 3600000).toPrecision(2))) + ' h';
  }

  function momentText(epochMs, stepMs) {
    const moment = new Date(epochMs);
    let text = two(moment.getUTCHours()) + ':' + two(moment.getUTCMinutes());
    if (stepMs < 60000) text += ':' + two(moment.getUTCSeconds());
    if (stepMs < 1000) text += '.' + Math.floor(moment.getUTCMilliseconds() / 100);
    return text;
  }
  const dayText = (epochMs) => new Date(epochMs).toISOString().slice(5, 10);

  /** Long times are squeezed by their logarithm; 1, 2 and 5 of each ten are named. */
  const toAxis = (chart, value) => (chart.along === 'durations' ? Math.log10(value) : value);
  /** Moments stand side by side, so that a pause takes no room. */
  const positionOf = (chart, index) => (chart.along === 'durations' ? Math.log10(chart.edges[index]) : index);
  function durationSplits(plot, axis, from, to) {
    const wanted = to - from > 2 ? [1] : to - from > 0.7 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
    const pixels = (plot.width - 80) / (to - from);
    const splits = [];
    for (let power = Math.floor(from); power <= Math.ceil(to); power += 1) {
      for (const digit of wanted) {
        const at = power + Math.log10(digit);
        const before = splits.length === 0 ? -Infinity : splits[splits.length - 1];
        if (at >= from && at <= to && (at - before) * pixels >= 52) splits.push(at);
      }
    }
    return splits;
  }

  /** Round moments, and the first after a pause, as far apart as their names need. */
  function momentSplits(chart, width) {
    const { edges, stretchMs } = chart;
    const count = edges.length - 1;
    const fewest = (count * 72) / Math.max(1, width);
    const everyMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000, 3600000, 7200000, 10800000, 21600000, 43200000, 86400000, 172800000, 604800000, 2592000000]
      .find((ms) => ms >= fewest * stretchMs && ms % stretchMs === 0) || stretchMs * Math.ceil(fewest);
    const splits = [];
    for (let index = 0; index < count; index += 1) {
      const isFirst = index === 0 || edges[index] - edges[index - 1] > stretchMs;
      if (!isFirst && edges[index] % everyMs !== 0) continue;
      while (isFirst && index > 0 && splits.length > 0 && index - splits[splits.length - 1] < fewest) splits.pop();
      if (splits.length === 0 || index - splits[splits.length - 1] >= fewest) splits.push(index);
    }
    return splits;
  }

  function momentNames(chart, splits) {
    return splits.map((at, index) => {
      const from = chart.edges[at];
      const isNewDay = index === 0 || dayText(from) !== dayText(chart.edges[splits[index - 1]]);
      return momentText(from, chart.stretchMs) + (isNewDay ? '\n' + dayText(from) : '');
    });
  }

  function valuesOf(chart, index) {
    const { values } = chart.series[index];
    if (!chart.stacked) return values;
    return values.map((_, at) => chart.series.slice(0, index + 1).reduce((sum, series) => sum + series.values[at], 0));
  }

  function stretchName(chart, index) {
    const from = chart.edges[index];
    const to = chart.edges[index + 1];
    if (chart.along === 'durations') return durationText(from) + ' to ' + durationText(to);
    const days = dayText(chart.edges[0]) === dayText(chart.edges[chart.edges.length - 1]) ? '' : dayText(from) + ' ';
    return days + momentText(from, chart.stretchMs);
  }

  /** The upright lines, each name where it hits no other. */
  function drawMarks(plot, chart) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = 11 * ratio + 'px system-ui, sans-serif';
    let freeFrom = [-Infinity, -Infinity, -Infinity];
    for (const { name, at } of chart.marks) {
      const x = Math.round(plot.valToPos(toAxis(chart, at), 'x', true));
      const width = ctx.measureText(name).width + 6 * ratio;
      const toLeft = x + width + 4 * ratio > bbox.left + bbox.width;
      const start = toLeft ? x - width - 4 * ratio : x + 4 * ratio;
      const row = Math.max(0, freeFrom.findIndex((free) => free <= start));
      freeFrom[row] = start + width;
      ctx.strokeStyle = colourOf('text');
      ctx.lineWidth = ratio;
      ctx.setLineDash([4 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (name === '') continue;
      const top = bbox.top + row * 17 * ratio;
      ctx.fillStyle = colourOf('card');
      ctx.globalAlpha = 0.85;
      ctx.fillRect(start - 2 * ratio, top, width, 16 * ratio);
      ctx.globalAlpha = 1;
      ctx.fillStyle = colourOf('text');
      ctx.textBaseline = 'top';
      ctx.textAlign = 'left';
      ctx.fillText(name, start + ratio, top + 2 * ratio);
    }
    ctx.restore();
  }

  function draw(chart) {
    const place = document.getElementById(chart.id);
    const last = chart.edges.length - 2;
    const x = chart.edges.map((_, index) => positionOf(chart, index));
    // Steps reach to the right: the last stretch ends at an edge of its own.
    const columns = chart.series.map((_, index) => [...valuesOf(chart, index), valuesOf(chart, index)[last]]);
    // What is piled up highest is drawn first, so that each area covers the part below it.
    const order = chart.series.map((_, index) => index);
    const piled = chart.stacked ? order.slice().reverse() : order;
    const grid = { stroke: colourOf('grid'), width: 1 };
    const axis = { stroke: colourOf('soft'), grid, ticks: { show: false }, font: '12px system-ui, sans-serif' };
    const highest = Math.max(...columns.map((values) => Math.max(...values)));
    const readingAt = (index, at) => (at === null || at === undefined ? '' : amountText(chart.series[index].values[Math.min(at, last)], chart.unit));

    const plot = new uPlot({
      width: Math.max(200, place.clientWidth),
      height: HEIGHT,
      // Half of the last moment's name stands right of the chart.
      padding: [8, 30, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      legend: { live: true },
      scales: {
        x: { time: false, range: () => [x[0], x[x.length - 1]] },
        y: { range: () => [0, (highest || 1) * 1.08] },
      },
      axes: [
        chart.along === 'moments'
          ? { ...axis, splits: (drawn) => momentSplits(chart, drawn.width - 80), filter: (_, splits) => splits, values: (_, splits) => momentNames(chart, splits) }
          : { ...axis, splits: durationSplits, filter: (_, splits) => splits, values: (_, splits) => splits.map((at) => durationText(10 ** at)) },
        { ...axis, size: 58, incrs: chart.unit === 'money' ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 1e10, 1e11], values: (_, splits) => splits.map((at) => amountText(at, chart.unit)) },
      ],
      series: [
        { label: chart.along === 'moments' ? 'time' : 'took', value: (_, __, ___, at) => (at === null || at === undefined ? '' : stretchName(chart, Math.min(at, last))) },
        ...piled.map((index) => {
          const { name, colour, look } = chart.series[index];
          const shared = { label: name, stroke: colourOf(colour), points: { show: false }, value: (_, __, ___, at) => readingAt(index, at) };
          if (look === 'limit') return { ...shared, width: 1.5, dash: [6, 4], label: name };
          return { ...shared, width: 0, fill: colourOf(colour), paths: uPlot.paths.stepped({ align: 1 }) };
        }),
      ],
      hooks: { draw: [(drawn) => drawMarks(drawn, chart)] },
    }, [x, ...piled.map((index) => columns[index])], place);
    plots.push({ plot, place });
    walkWithArrows(plot, place, chart, last);
  }

  function walkWithArrows(plot, place, chart, last) {
    const reading = document.getElementById(chart.id + '-reading');
    let at = -1;
    place.onkeydown = (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
      if (!(event.key in steps)) return;
      event.preventDefault();
      at = Math.min(last, Math.max(0, at + steps[event.key]));
      plot.setCursor({ left: plot.valToPos(positionOf(chart, at), 'x'), top: 10 });
      reading.textContent = stretchName(chart, at) + ': ' + chart.series.map((series) => series.name + ' ' + amountText(series.values[at], chart.unit)).join(', ');
    };
  }

  function drawAll() {
    for (const { plot } of plots) plot.destroy();
    plots = [];
    charts.forEach(draw);
  }

  function fit() {
    for (const { plot, place } of plots) {
      const width = Math.max(200, place.clientWidth);
      if (width !== plot.width) plot.setSize({ width, height: HEIGHT });
    }
  }

  drawAll();
  new ResizeObserver(fit).observe(document.body);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  addEventListener('beforeprint', () => {
    document.documentElement.dataset.colours = 'light';
    drawAll();
  });
  addEventListener('afterprint', () => {
    delete document.documentElement.dataset.colours;
    drawAll();
  });
  document.documentElement.dataset.drawn = String(plots.length);
})();
`;
