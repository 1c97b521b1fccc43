// The page of `treadle compare --checkpoint`: variants in the place of a model's own attention.
'use strict';

if (data.kind === 'checkpoint') {
  const rows = data.rows, names = rows.map(r => r.variant), index = v => Math.max(0, names.indexOf(v)), h = data.head, r0 = rows[0];
  header(data.title, `${h.checkpoint || ''} reading ${h.text || ''}: each variant in the place of its attention, against dense attention with the same weights.`, [
    ['passages', r0.passages], ['tokens of each', r0.tokens], ['windows', r0.windows], ['tokens of a window', r0.context], ['stride', r0.stride], ['at once', r0.batch], ['CPU', h.machine.cpu], ['cores', h.machine.cores], ['threads', r0.threads],
    ['backend', `${r0.backend} on ${r0.isa}`], ['compiler', h.compiler], ['version', `${h.version}, commit ${h.commit}`], ['seed', h.seed], ['date', h.date]]);
  const style = (v, extra) => ({borderColor: colour(index(v)), backgroundColor: colour(index(v)), pointStyle: shape(index(v)), borderDash: [], pointRadius: 6, ...extra});
  const scatter = (y, title, axis, about) => r0[y] === undefined ? null : section(title, about, false, chart(() => ({
    type: 'scatter', data: {datasets: rows.filter(r => r[y] !== null).map(r => style(r.variant, {label: r.variant, data: [{x: r.median_ms, y: y === 'relative_error' ? Math.max(r[y], 1e-9) : r[y]}]}))},
    options: {scales: {x: {title: {display: true, text: r0.context ? 'median time of a window (ms)' : 'median time of a batch (ms)'}, grid: {color: variable('--line')}}, y: axis()},
              plugins: {legend, tooltip: {callbacks: {label: c => ` ${c.dataset.label}: ${milliseconds(c.parsed.x)}, ${scientific(c.parsed.y)}`}}}},
  }), '', title));
  scatter('relative_error', 'Error against time', () => log_axis('relative error', x => x.toExponential(0)), 'Of the hidden states at the output.');
  scatter('mean_cosine', 'Meaning against time', () => ({title: {display: true, text: 'mean cosine'}, grid: {color: variable('--line')}}), 'Cosine of a passage\u2019s vector and its dense one, mean over the passages.');
  scatter('perplexity', 'Perplexity against time', () => log_axis('perplexity'), 'Of the text: lower is better. The model was trained with its own attention.');
  const layers = rows.filter(r => r.layer_errors && r.layer_errors.length > 1);
  if (layers.length)
    section('Error behind each layer', 'Of the hidden states, sampled passages.', true, chart(() => ({
      type: 'line', data: {labels: layers[0].layer_errors.map((_, i) => String(i)), datasets: layers.map(r => style(r.variant, {label: r.variant, data: r.layer_errors.map(e => e === 0 ? null : e), pointRadius: 4, borderWidth: 2, borderDash: dash(index(r.variant))}))},
      options: {scales: {x: {title: {display: true, text: 'layer'}, grid: {display: false}}, y: log_axis('relative error', x => x.toExponential(0))}, plugins: {legend, tooltip: {callbacks: {label: c => ` ${c.dataset.label}: ${scientific(c.parsed.y)}`}}}},
    }), '', 'error behind each layer'));
  weights_section();
  const show = x => typeof x === 'number' ? number(x, 4) : x === null || x === undefined ? '–' : String(x);
  const fields = Object.keys(r0).filter(k => !Array.isArray(r0[k]) && !['passages', 'tokens', 'batch', 'backend', 'isa', 'threads'].includes(k));
  section('Table', 'A click on a heading sorts. The downloads hold every field (docs/compare.md).', true,
    element('div', {class: 'controls'}, download('CSV', 'checkpoint.csv', 'text/csv', data.files.csv), download('JSON', 'checkpoint.json', 'application/json', data.files.json)),
    table(fields.map(k => ({name: k, title: k.replaceAll('_', ' '), text: k === 'variant', show: k.endsWith('_bytes') ? bytes : k.endsWith('error') ? scientific : show})), rows, r => colour(index(r.variant))));
  finish();
}
