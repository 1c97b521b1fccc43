// The page of `treadle compare`: time, memory, error, roofline, heads, masks, weights, table.
'use strict';

const results = data.kind === 'compare' ? data.rows : [];
const variants = [...new Set(results.map(r => r.variant))];
const index_of = v => Math.max(0, variants.indexOf(v));
const inputs = [...new Set(results.map(r => r.input))];
const growing = inputs.filter(i => new Set(data.rows.filter(r => r.input === i).map(r => r.length)).size > 1);
const rows_of = (input, variant) => data.rows.filter(r => r.input === input && r.variant === variant).sort((a, b) => a.length - b.length);
const shape_text = r => `batch ${r.batch}, ${r.heads} heads${r.kv_heads === r.heads ? '' : ` (${r.kv_heads} key heads)`} of ${r.head_dim}`;
const series = (i, extra = {}) => ({
  borderColor: colour(i), backgroundColor: colour(i), pointStyle: shape(i), borderDash: dash(i), borderWidth: 2, pointRadius: 4, pointHoverRadius: 6, ...extra});

/// Whiskers from y_low to y_high of points that have them.
const whiskers = {
  id: 'whiskers',
  beforeDatasetsDraw(c) {
    const {ctx, scales: {y}} = c;
    ctx.save();
    c.data.datasets.forEach((d, i) => {
      if (!c.isDatasetVisible(i)) return;
      c.getDatasetMeta(i).data.forEach((p, j) => {
        const {low, high} = d.data[j];
        if (!(low > 0) || !(high > 0)) return;
        ctx.strokeStyle = d.borderColor;
        ctx.globalAlpha = .6;
        ctx.beginPath();
        ctx.moveTo(p.x, y.getPixelForValue(low));
        ctx.lineTo(p.x, y.getPixelForValue(high));
        ctx.stroke();
      });
    });
    ctx.restore();
  },
};
/// A line and a ring where a variant becomes faster than what it is compared with.
const crossings = marks => ({
  id: 'crossings',
  afterDatasetsDraw(c) {
    const {ctx, chartArea: a, scales: {x, y}} = c;
    ctx.save();
    ctx.font = `11px ${Chart.defaults.font.family}`;
    let row = 0;
    for (const m of [...marks].sort((p, q) => p.length - q.length)) {
      if (m.length === null || !variants.some((v, i) => v === m.variant && c.isDatasetVisible(i))) continue;
      const px = x.getPixelForValue(m.length), py = y.getPixelForValue(m.milliseconds);
      if (px < a.left || px > a.right) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(index_of(m.variant));
      ctx.setLineDash([2, 3]);
      ctx.beginPath();
      ctx.moveTo(px, py);
      ctx.lineTo(px, a.top + 8);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(px, py, 7, 0, 7);
      ctx.stroke();
      ctx.lineWidth = 1;
      const text = `${m.variant} at ${Math.round(m.length).toLocaleString('en')}`;
      const right = px + ctx.measureText(text).width + 6 < a.right;
      ctx.textAlign = right ? 'left' : 'right';
      ctx.fillText(text, px + (right ? 4 : -4), a.top + 12 + 14 * row++);
    }
    ctx.restore();
  },
});

function head() {
  const h = data.head, r = data.rows[0] || {};
  header(data.title, 'Attention variants on the same inputs, in turns, in one run: time, memory, and how far each is from dense attention.', [
    ['CPU', h.machine.cpu], ['cores', h.machine.cores], ['threads', r.threads], ['backend', `${r.backend} on ${r.isa}`],
    ['FMA peak', h.peak_gflops ? `${number(h.peak_gflops)} GFLOP/s` : null],
    ...(data.roofline.bandwidths || []).map(b => [b.name, `${number(b.gigabytes_per_second)} GB/s`]),
    ['compiler', h.compiler], ['version', `${h.version}, commit ${h.commit}`], ['seed', h.seed], ['date', h.date]]);
}

function time_and_memory() {
  for (const input of growing) {
    const of = v => rows_of(input, v);
    const lengths = [...new Set(data.rows.filter(r => r.input === input).map(r => r.length))].sort((a, b) => a - b);
    const shown = variants.filter(v => of(v).length);
    const exponent = v => (data.exponents.find(e => e.input === input && e.variant === v) || {}).exponent;
    const marks = data.crossovers.filter(c => c.input === input);
    const label = v => exponent(v) === undefined || exponent(v) === null ? v : `${v}: N^${exponent(v).toFixed(2)}`;
    const about = `${input === 'random' ? 'Random inputs' : input}: ${shape_text(of(shown[0])[0])}. Medians; whiskers from the 10th to the 90th percentile; N^… is the fitted growth, its line is thin.`;
    const fits = v => {
      const r = of(v), e = exponent(v);
      if (r.length < 3 || e === undefined || e === null) return [];
      const mean = f => r.reduce((s, p) => s + Math.log(f(p)), 0) / r.length;
      const mx = mean(p => p.length), my = mean(p => p.median_ms);
      return [lengths[0], lengths[lengths.length - 1]].map(x => ({x, y: Math.exp(my + e * (Math.log(x) - mx))}));
    };
    const pick = (v, y, low, high) => of(v).map(r => ({x: r.length, y: r[y], low: low ? r[low] : 0, high: high ? r[high] : 0}));
    const tip = text => ({callbacks: {title: t => `${t[0].parsed.x.toLocaleString('en')} tokens`, label: c => ` ${c.dataset.label.split(': N^')[0]}: ${text(c.parsed.y)}`}});
    section('Time over length', about, true, chart(() => ({
      type: 'line',
      data: {datasets: [
        ...shown.map(v => series(index_of(v), {label: label(v), data: pick(v, 'median_ms', 'p10_ms', 'p90_ms')})),
        ...shown.map(v => ({...series(index_of(v)), label: '', data: fits(v), pointRadius: 0, pointHoverRadius: 0, pointHitRadius: 0, borderWidth: .8, fit: v}))]},
      options: {
        scales: {x: lengths_axis(lengths), y: log_axis('time (ms)')}, parsing: true,
        plugins: {legend: {...legend, labels: {...legend.labels, filter: i => i.text !== ''}, onClick: (e, item, l) => {
          const c = l.chart, visible = c.isDatasetVisible(item.datasetIndex);
          c.setDatasetVisibility(item.datasetIndex, !visible);
          c.setDatasetVisibility(item.datasetIndex + shown.length, !visible);
          c.update();
        }}, tooltip: {filter: t => t.datasetIndex < shown.length, ...tip(milliseconds)}},
      },
      plugins: [whiskers, crossings(marks)],
    }), 'high', 'time over length'),
    marks.length ? element('p', {class: 'note'}, marks.map(m => `${m.variant}: ${m.text}`).join('. ') + '.') : null);
    const memory = name => chart(() => ({
      type: 'line',
      data: {datasets: shown.map(v => series(index_of(v), {label: v, data: pick(v, name)}))},
      options: {scales: {x: lengths_axis(lengths), y: {...log_axis(name === 'planned_bytes' ? 'planned memory' : 'measured memory', bytes),
                grace: '10%', afterBuildTicks: a => { const step = a.max / a.min > 200 ? 4 : 2; a.ticks = []; for (let t = 1; t <= a.max; t *= step) if (t >= a.min) a.ticks.push({value: t}); },
                ticks: {callback: bytes}}},
                plugins: {legend, tooltip: tip(bytes)}},
    }), '', 'memory over length');
    section('Memory over length', 'Arena and workspaces that the plan needs beside inputs and result.', false, memory('planned_bytes'));
  }
}

function frontier() {
  const groups = [...new Set(data.rows.map(r => JSON.stringify([r.input, r.length])))].map(g => JSON.parse(g));
  if (!groups.length) return;
  const real = groups.findIndex(g => g[0] !== 'random'), first = real >= 0 ? real : groups.length - 1;
  let now = groups[first];
  const points = () => data.rows.filter(r => r.input === now[0] && r.length === now[1] && r.relative_error !== null);
  const box = chart(() => {
    const p = points(), floor = 1e-9;
    const at = r => ({x: r.median_ms, y: Math.max(r.relative_error, floor)});
    const best = [...p].sort((a, b) => a.median_ms - b.median_ms || a.relative_error - b.relative_error)
      .reduce((list, r) => list.length && list[list.length - 1].relative_error <= r.relative_error ? list : [...list, r], []);
    return {
      type: 'scatter',
      data: {datasets: [...p.map(r => series(index_of(r.variant), {label: r.variant, data: [at(r)], pointRadius: 6, borderDash: []})),
        {label: 'frontier', data: best.map(at), showLine: true, stepped: 'before', pointRadius: 0, pointHitRadius: 0, borderColor: variable('--quiet'), backgroundColor: 'transparent', borderWidth: 1, borderDash: [4, 3], pointStyle: 'line'}]},
      options: {scales: {x: log_axis('time (ms)'), y: log_axis('relative error', x => x.toExponential(0))},
                plugins: {legend, tooltip: {callbacks: {label: c => ` ${c.dataset.label}: ${milliseconds(c.parsed.x)}, error ${scientific(c.parsed.y)}`}}}},
    };
  }, '', 'error against time');
  section('Error against time', 'Against dense attention (causal variants: causal dense attention) in float64. What lies on the frontier is beaten by nothing in both.', !growing.length,
    element('div', {class: 'controls'}, choose('Input', groups.map(g => `${g[0]}, ${g[1].toLocaleString('en')} tokens`), i => { now = groups[i]; box.redraw(); }, first)), box);
}

function roofline() {
  const {kernels, peak_gflops: peak, bandwidths} = data.roofline;
  if (!kernels.length) return;
  const shown = [...new Set(kernels.map(k => k.variant))];
  const with_flops = kernels.filter(k => k.flops > 0 && k.bytes > 0 && k.milliseconds > 0);
  section('Roofline', `Every kernel of every variant and length: executed FLOPs over the bytes of its operands (each once), against the FMA peak and the read bandwidth that were measured here. A larger point is a longer input. ${kernels.length - with_flops.length} kernels without FLOPs (copies, masks) are left out.`, true, chart(() => {
    const x = with_flops.map(k => k.flops / k.bytes), low = Math.min(...x, .1) / 2, high = Math.max(...x, peak / Math.max(...bandwidths.map(b => b.gigabytes_per_second), 1)) * 3;
    const longest = Math.max(...with_flops.map(k => k.length)), shortest = Math.min(...with_flops.map(k => k.length));
    const roof = (b, i) => ({label: `${b.name}: ${number(b.gigabytes_per_second)} GB/s`, showLine: true, pointRadius: 0, pointHitRadius: 0, pointStyle: 'line', borderColor: variable('--quiet'), backgroundColor: 'transparent', borderDash: dashes[i % 4], borderWidth: 1.5,
      data: [{x: low, y: low * b.gigabytes_per_second}, {x: peak / b.gigabytes_per_second, y: peak}, {x: high, y: peak}]});
    return {
      type: 'scatter',
      data: {datasets: [
        ...shown.map(v => {
          const of = with_flops.filter(k => k.variant === v);
          return series(index_of(v), {label: v, borderDash: [], borderWidth: 1.5, data: of.map(k => ({x: k.flops / k.bytes, y: k.flops / k.milliseconds / 1e6, k})),
            pointRadius: of.map(k => 3 + 4 * Math.log(k.length / shortest + 1e-9) / Math.max(Math.log(longest / shortest), 1e-9) || 5)});
        }).filter(d => d.data.length),
        ...bandwidths.map(roof)]},
      options: {scales: {x: {...log_axis('FLOPs a byte'), min: low, max: high}, y: {...log_axis('GFLOP/s'), suggestedMax: peak * 2}},
                plugins: {legend, tooltip: {callbacks: {label: c => { const k = c.raw.k; return k ? ` ${k.variant}, ${k.input} × ${k.length}: ${k.kernel} (${k.op}), ${number(c.parsed.y)} GFLOP/s, ${milliseconds(k.milliseconds)}` : c.dataset.label; }}}}},
    };
  }, 'high', 'roofline'));
}

function heads() {
  if (!data.heads.length) return;
  const groups = [...new Set(data.heads.map(r => JSON.stringify([r.input, r.length])))].map(g => JSON.parse(g));
  let now = groups[0];
  const bars = (what, title, log) => chart(() => {
    const of = data.heads.filter(h => h.input === now[0] && h.length === now[1] && h[what].length);
    const count = Math.max(0, ...of.map(h => h[what].length));
    return {
      type: 'bar',
      data: {labels: [...Array(count).keys()].map(i => String(i)), datasets: of.map(h => ({label: h.variant, data: h[what].map(x => log && x !== null ? Math.max(x, 1e-9) : x), backgroundColor: colour(index_of(h.variant)), borderColor: variable('--card'), borderWidth: 1, minBarLength: 2}))},
      options: {scales: {x: {title: {display: true, text: 'head'}, grid: {display: false}}, y: log ? log_axis(title, x => x.toExponential(0)) : {title: {display: true, text: title}, grid: {color: variable('--line')}, beginAtZero: true}},
                plugins: {legend: {...legend, labels: {boxWidth: 10, boxHeight: 10}}, tooltip: {callbacks: {title: t => `head ${t[0].label}`, label: c => ` ${c.dataset.label}: ${log ? scientific(c.parsed.y) : `${number(c.parsed.y)} nats`}`}}}},
    };
  }, '', title);
  const error = bars('error', 'relative error', true), entropy = bars('entropy', 'mean entropy (nats)', false);
  section('Error of each head', 'Of all rows of the head that were measured.', false,
    element('div', {class: 'controls'}, choose('Input', groups.map(g => `${g[0]}, ${g[1].toLocaleString('en')} tokens`), i => { now = groups[i]; error.redraw(); entropy.redraw(); })), error);
  section('Entropy of each head', 'Of the rows\u2019 own weights: 0 if one key has all weight, ln N if all share it evenly. Variants without such weights are not here.', false, entropy);
}

function masks() {
  if (!data.masks.length) return;
  const draw_one = m => {
    const canvas = element('canvas', {role: 'img', 'aria-label': `tiles of ${m.variant}`, width: m.rows[0].length, height: m.rows.length});
    drawings.push(() => {
      const c = canvas.getContext('2d'), of = {e: variable('--empty'), p: variable('--partial'), f: variable('--full')};
      m.rows.forEach((row, y) => [...row].forEach((t, x) => { c.fillStyle = of[t]; c.fillRect(x, y, 1, 1); }));
      canvas.dataset.drawn = '1';
    });
    return element('div', {class: 'map'}, element('h3', {}, m.variant), canvas,
      element('p', {class: 'note'}, `${(100 * m.useful / m.pairs).toFixed(1)} % of the pairs kept, ${(100 * m.executed / m.pairs).toFixed(1)} % computed; tiles of ${m.strip} × ${m.block}; ${m.same_for_all_heads ? 'all heads alike' : `head ${m.head}`}`));
  };
  const m = data.masks[0];
  const key = (name, text) => { const s = element('span', {class: 'swatch'}); s.style.background = `var(${name})`; return element('span', {}, s, text); };
  section('Tiles of every mask', `${m.length.toLocaleString('en')} queries (down) × ${m.length.toLocaleString('en')} keys (right), in the kernels\u2019 tiles. Empty tiles cost nothing, full ones need no mask.`, true,
    element('div', {class: 'legend'}, key('--empty', 'empty'), key('--partial', 'partial'), key('--full', 'full')), element('div', {class: 'maps'}, ...data.masks.map(draw_one)));
}

function rows_table() {
  const percent = x => x === null ? '–' : `${(100 * x).toFixed(0)} %`;
  const columns = [
    {name: 'variant', title: 'variant', text: true}, {name: 'input', title: 'input', text: true}, {name: 'length', title: 'length', show: whole},
    {name: 'median_ms', title: 'median ms', show: number}, {name: 'p10_ms', title: 'p10', show: number}, {name: 'p90_ms', title: 'p90', show: number}, {name: 'repetitions', title: 'runs', show: whole},
    {name: 'useful_gflops', title: 'GFLOP/s', show: number, about: 'over the pairs that the mask keeps'}, {name: 'executed_gflops', title: 'executed', show: number, about: 'GFLOP/s over whole tiles'},
    {name: 'fraction_of_peak', title: 'of peak', show: percent}, {name: 'planned_bytes', title: 'planned', show: bytes}, {name: 'peak_bytes', title: 'measured', show: bytes},
    {name: 'relative_error', title: 'error', show: scientific}, {name: 'mean_entropy', title: 'entropy', show: number}, {name: 'sampled_rows', title: 'rows', show: whole}];
  section('Table', 'A click on a heading sorts. The downloads hold every field (docs/compare.md).', true,
    element('div', {class: 'controls'}, download('CSV', 'compare.csv', 'text/csv', data.files.csv), download('JSON', 'compare.json', 'application/json', data.files.json)),
    table(columns, data.rows, r => colour(index_of(r.variant))));
}

if (data.kind === 'compare') {
  head();
  time_and_memory();
  frontier();
  roofline();
  heads();
  masks();
  weights_section();
  rows_table();
  finish();
}
