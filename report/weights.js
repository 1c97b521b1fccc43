// Attention weights: all layers and heads as small maps; a click shows one as a heat map with the tokens' labels, and as
// lines from queries to keys, in the manner of BertViz (Vig 2019).
'use strict';

/// 0 to 255 for weights 0 to 1, by the square root, so that small ones are told apart.
function unpack(text) {
  const raw = atob(text), weights = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; ++i) weights[i] = (raw.charCodeAt(i) / 255) ** 2;
  return weights;
}

/// Colours from the background's to the strongest, by the square root of the weight over the largest.
function heat_colours() {
  const [a, b] = ['--heat-0', '--heat-1'].map(n => variable(n).split(',').map(Number));
  const list = [];
  for (let i = 0; i < 256; ++i) list.push(a.map((x, c) => Math.round(x + (b[c] - x) * i / 255)));
  return list;
}

function fill_pixels(canvas, weights, rows, columns) {
  canvas.width = columns;
  canvas.height = rows;
  const c = canvas.getContext('2d'), image = c.createImageData(columns, rows), ramp = heat_colours();
  const top = weights.reduce((m, w) => Math.max(m, w), 1e-6);
  for (let i = 0; i < weights.length; ++i) {
    const p = ramp[Math.round(255 * Math.sqrt(weights[i] / top))];
    image.data.set([p[0], p[1], p[2], 255], 4 * i);
  }
  c.putImageData(image, 0, 0);
  canvas.dataset.drawn = '1';
}

const cut = (text, most) => [...text].length > most ? [...text].slice(0, most - 1).join('') + '…' : text;

/// One map with labels on both sides; `point(q, k)` is told what lies under the pointer, or nothing.
function draw_map(canvas, m, weights, at, point) {
  const rows = m.queries.length, columns = m.keys.length, scale = window.devicePixelRatio || 1;
  const width = canvas.parentNode.clientWidth || 600;
  const c = canvas.getContext('2d'), font = `11px ${getComputedStyle(document.documentElement).fontFamily}`;
  c.font = font;
  const label = list => Math.max(...list.map(t => c.measureText(cut(t, 18)).width), 10) + 8;
  const left = label(m.queries), top = label(m.keys);
  const cell = Math.max(2, Math.min(28, (width - left - 2) / columns)), height = top + cell * rows + 2;
  canvas.style.height = `${height}px`;
  canvas.width = width * scale;
  canvas.height = height * scale;
  c.scale(scale, scale);
  c.font = font;
  const ramp = heat_colours(), largest = weights.reduce((x, w) => Math.max(x, w), 1e-6);
  for (let q = 0; q < rows; ++q)
    for (let k = 0; k < columns; ++k) {
      const [r, g, b] = ramp[Math.round(255 * Math.sqrt(weights[q * columns + k] / largest))];
      c.fillStyle = `rgb(${r},${g},${b})`;
      c.fillRect(left + k * cell, top + q * cell, cell + .5, cell + .5);
    }
  c.strokeStyle = variable('--line');
  c.strokeRect(left - .5, top - .5, cell * columns + 1, cell * rows + 1);
  const every = Math.max(1, Math.ceil(12 / cell));
  c.textBaseline = 'middle';
  for (let q = 0; q < rows; q += every) {
    c.fillStyle = at && at[0] === q ? variable('--strong') : variable('--text');
    c.textAlign = 'right';
    c.fillText(cut(m.queries[q], 18), left - 5, top + (q + .5) * cell);
  }
  for (let k = 0; k < columns; k += every) {
    c.fillStyle = at && at[1] === k ? variable('--strong') : variable('--text');
    c.save();
    c.translate(left + (k + .5) * cell, top - 5);
    c.rotate(-Math.PI / 2);
    c.textAlign = 'left';
    c.fillText(cut(m.keys[k], 18), 0, 0);
    c.restore();
  }
  if (at) {
    c.strokeStyle = variable('--partial');
    c.lineWidth = 2;
    c.strokeRect(left + at[1] * cell, top + at[0] * cell, cell, cell);
  }
  canvas.dataset.drawn = '1';
  canvas.onpointermove = e => {
    const box = canvas.getBoundingClientRect();
    const k = Math.floor((e.clientX - box.left - left) / cell), q = Math.floor((e.clientY - box.top - top) / cell);
    point(q >= 0 && q < rows && k >= 0 && k < columns ? [q, k] : null);
  };
  canvas.onpointerleave = () => point(null);
}

/// Queries left, keys right, a line as thick as its weight; of one query if `at` says which.
function draw_lines(m, weights, at, tint) {
  const most = 64, rows = Math.min(m.queries.length, most), columns = Math.min(m.keys.length, most), step = 15;
  const width = 420, height = Math.max(rows, columns) * step + 14;
  const svg = element('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'lines from queries to keys', 'font-size': 11});
  const y = i => 12 + i * step;
  const lines = [];
  for (let q = 0; q < rows; ++q)
    for (let k = 0; k < columns; ++k) {
      const w = weights[q * m.keys.length + k];
      if ((at && at[0] !== q) || w < (at ? .005 : .04)) continue;
      lines.push([w, element('line', {x1: 132, y1: y(q), x2: width - 132, y2: y(k), stroke: tint, 'stroke-width': (.4 + 3 * w).toFixed(2), 'stroke-opacity': Math.min(1, .08 + w).toFixed(3)})]);
    }
  lines.sort((a, b) => b[0] - a[0]);
  svg.append(...lines.slice(0, 1500).map(l => l[1]));
  const label = (list, count, x, anchor, mine) => {
    for (let i = 0; i < count; ++i)
      svg.append(element('text', {x, y: y(i) + 4, 'text-anchor': anchor, 'font-weight': mine === i ? 'bold' : null}, cut(list[i], 18)));
  };
  label(m.queries, rows, 126, 'end', at ? at[0] : -1);
  label(m.keys, columns, width - 126, 'start', at ? at[1] : -1);
  return svg;
}

function weights_section() {
  if (!data.attention || !data.attention.length) return;
  const maps = data.attention;
  let m = maps[0], layer = 0, head = 0, at = null;
  const thumbs = element('div', {class: 'thumbs'}), big = element('canvas', {role: 'img', 'aria-label': 'attention weights'});
  const lines = element('div'), readout = element('div', {class: 'readout'}), about = element('p', {class: 'note'}), title = element('h3');
  const current = () => unpack(m.layers[layer].heads[head]);
  const show = () => {
    const w = current();
    title.textContent = `${m.name}, ${m.layers.length > 1 ? `layer ${m.layers[layer].name || layer}, ` : ''}head ${head}`;
    draw_map(big, m, w, at, p => { if (String(p) !== String(at)) { at = p; show(); } });
    lines.replaceChildren(draw_lines(m, w, at, colour(head)));
    const sum = at ? w[at[0] * m.keys.length + at[1]] : 0;
    readout.textContent = at ? `${m.queries[at[0]]} → ${m.keys[at[1]]}: ${sum < .0005 ? 'less than 0.0005' : sum.toFixed(3)}` : 'Rows are queries, columns keys. Point at a cell for its weight.';
  };
  const draw_thumbs = () => {
    const most = Math.max(...m.layers.map(l => l.heads.length));
    thumbs.style.gridTemplateColumns = `auto repeat(${most}, auto)`;
    const cells = [element('span', {class: 'layer'}, 'layer \\ head'), ...[...Array(most).keys()].map(h => element('span', {class: 'head'}, String(h)))];
    m.layers.forEach((l, i) => {
      cells.push(element('span', {class: 'layer'}, l.name || String(i)));
      for (let h = 0; h < most; ++h) {
        if (h >= l.heads.length) { cells.push(element('span')); continue; }
        const t = element('canvas', {role: 'button', tabindex: 0, 'aria-label': `layer ${i}, head ${h}`, 'aria-pressed': String(i === layer && h === head)});
        const pick = () => { layer = i; head = h; at = null; draw_thumbs(); show(); };
        t.addEventListener('click', pick);
        t.addEventListener('keydown', e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); pick(); } });
        fill_pixels(t, unpack(l.heads[h]), m.queries.length, m.keys.length);
        cells.push(t);
      }
    });
    thumbs.replaceChildren(...cells);
    about.textContent = m.note || '';
  };
  section('Attention weights', 'Choose layer and head by a click. Colours grow with the square root of the weight, from none to the map\u2019s largest.', true,
    element('div', {class: 'controls'}, choose('Attention', maps.map(x => x.name), i => { m = maps[i]; layer = Math.min(layer, m.layers.length - 1); head = Math.min(head, m.layers[layer].heads.length - 1); at = null; draw_thumbs(); show(); })),
    about, thumbs, title, readout, element('div', {class: 'heat'}, element('div', {}, big), lines));
  drawings.push(() => { draw_thumbs(); show(); });
  window.addEventListener('resize', show);
}
