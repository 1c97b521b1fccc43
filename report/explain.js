// The page of `treadle explain`: the graph before and after each pass, what each saves, nodes with their kernels, memory.
'use strict';

const tints = {
  input: '--t-input', output: '--t-input', region_input: '--t-input', constant: '--t-constant', state: '--t-constant', repeat: '--t-repeat',
  mask: '--t-mask', mask_to_bias: '--t-mask', select: '--t-mask', attention: '--t-attention', attention_probe: '--t-attention',
  linear_attention: '--t-attention', recurrent_attention: '--t-attention'};

/// What a node is, without numbers, so that it is found again in another stage's graph.
const signature = n => JSON.stringify([n.op, n.name, Object.entries(n.attributes || {}).filter(([k]) => k !== 'region' && k !== 'index'), n.outputs.map(o => o.shape)]);
/// Ids of the nodes of `g` that `other` does not have, each as often as it is missing.
function missing_ids(g, other) {
  const there = new Map();
  for (const n of other.nodes) there.set(signature(n), (there.get(signature(n)) || 0) + 1);
  const ids = new Set();
  for (const n of g.nodes) {
    const left = there.get(signature(n)) || 0;
    if (left > 0) there.set(signature(n), left - 1);
    else ids.add(n.id);
  }
  return ids;
}

const label_of = n => {
  const own = n.leaf || (n.name || '').split('.').pop();
  return n.op === 'repeat' ? `${n.name} × ${n.attributes.times}` : own && own !== '#' ? `${n.op}  ${cut(own, 24)}` : n.op;
};
const about_of = n => [`${n.op} ${n.name || ''}`, ...n.outputs.map(o => `${o.dtype} [${o.shape.join(', ')}]`),
  ...Object.entries(n.attributes || {}).map(([k, v]) => `${k} = ${typeof v === 'string' ? v : JSON.stringify(v)}`)].join('\n');

/// Places for the nodes of a region: rows by the longest path from the top, each row in the order of its sources. The
/// body of a repeat is placed first and stands inside its box. Parameters are left out: they are in the tables.
function place(g, region) {
  const nodes = g.nodes.filter(n => n.region === region && n.op !== 'parameter');
  const here = new Map(nodes.map(n => [n.id, {n, row: 0, from: []}]));
  for (const p of here.values()) {
    if (p.n.op === 'repeat') p.body = place(g, p.n.body);
    for (const i of p.n.inputs) {
      const source = here.get(i.node);
      if (!source) continue;
      p.from.push(source);
      p.row = Math.max(p.row, source.row + 1);
    }
    p.width = Math.max(label_of(p.n).length * 6.4 + 18, p.body ? p.body.width + 24 : 0);
    p.height = p.body ? p.body.height + 40 : 24;
  }
  // An input stands just above what reads it first.
  for (const p of here.values())
    if (!p.from.length) {
      const readers = [...here.values()].filter(r => r.from.includes(p));
      if (readers.length) p.row = Math.max(0, Math.min(...readers.map(r => r.row)) - 1);
    }
  const rows = [];
  for (const p of here.values()) (rows[p.row] = rows[p.row] || []).push(p);
  let y = 0, width = 0;
  const gap = 16;
  for (const row of rows) {
    if (!row) continue;
    const centre = p => p.from.length ? p.from.reduce((s, q) => s + q.x + q.width / 2, 0) / p.from.length : 1e9;
    row.sort((a, b) => centre(a) - centre(b) || a.n.id - b.n.id);
    const needed = row.reduce((s, p) => s + p.width + gap, -gap);
    let x = -needed / 2;
    for (const p of row) { p.x = x; p.y = y; x += p.width + gap; }
    y += Math.max(...row.map(p => p.height)) + 30;
    width = Math.max(width, needed);
  }
  for (const p of here.values()) p.x += width / 2;
  return {places: [...here.values()], width, height: Math.max(y - 30, 0)};
}

function draw_graph(g, marked, mark) {
  const layout = place(g, 0), margin = 14;
  const w = layout.width + 2 * margin, h = layout.height + 2 * margin;
  const svg = element('svg', {xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${w} ${h}`, width: w, height: h, 'font-size': 11, role: 'img', 'aria-label': 'graph'});
  svg.style.fontFamily = 'ui-monospace, "DejaVu Sans Mono", monospace';
  const put = (places, dx, dy) => {
    for (const p of places)
      for (const q of p.from) {
        const x1 = dx + q.x + q.width / 2, y1 = dy + q.y + q.height, x2 = dx + p.x + p.width / 2, y2 = dy + p.y, bend = Math.max(12, (y2 - y1) / 2);
        svg.append(element('path', {d: `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`, fill: 'none', stroke: variable('--quiet'), 'stroke-opacity': .55}));
      }
    for (const p of places) {
      const new_one = marked.has(p.n.id);
      svg.append(element('rect', {x: dx + p.x, y: dy + p.y, width: p.width, height: p.height, rx: 4, fill: variable(tints[p.n.op] || '--card'),
        stroke: new_one ? mark : variable('--quiet'), 'stroke-width': new_one ? 2.5 : .8}, element('title', {}, about_of(p.n))));
      svg.append(element('text', {x: dx + p.x + p.width / 2, y: dy + p.y + 16, 'text-anchor': 'middle', fill: variable('--text'), 'pointer-events': 'none'}, label_of(p.n)));
      if (p.body) put(p.body.places, dx + p.x + (p.width - p.body.width) / 2, dy + p.y + 28);
    }
  };
  put(layout.places, margin, margin);
  return svg;
}

function explain_graphs() {
  const stages = data.stages, names = stages.map((s, i) => i === 0 ? 'as declared' : `${i} ${s.pass}: ${s.rewrites} rewrites`);
  const before = element('div', {class: 'picture'}), after = element('div', {class: 'picture'}), changes = element('div');
  const titles = [element('h3'), element('h3')];
  const first = Math.max(1, stages.findIndex(s => s.pass === 'fuse_attention' && s.rewrites > 0));
  let now = Math.min(stages.length - 1, first);
  const all = choose('Pass', [...names.slice(1), 'all passes together'], i => { now = i + 1; show(); }, now - 1);
  const save = which => () => {
    const svg = (which ? after : before).querySelector('svg');
    const text = new XMLSerializer().serializeToString(svg);
    const a = element('a', {href: URL.createObjectURL(new Blob([text], {type: 'image/svg+xml'})), download: `${data.model} ${which ? 'after' : 'before'}.svg`});
    a.click();
  };
  function show() {
    const whole_way = now === stages.length;
    const a = whole_way ? stages[0] : stages[now - 1], b = whole_way ? stages[stages.length - 1] : stages[now];
    titles[0].textContent = `before: ${a.graph.nodes.length} nodes`;
    titles[1].textContent = `after: ${b.graph.nodes.length} nodes`;
    before.replaceChildren(draw_graph(a.graph, missing_ids(a.graph, b.graph), colour(1)));
    after.replaceChildren(draw_graph(b.graph, missing_ids(b.graph, a.graph), colour(2)));
    const lines = (list, mark, kind) => list.map(t => element('span', {class: kind}, `${mark} ${t}\n`));
    changes.replaceChildren(whole_way || (!b.removed.length && !b.added.length) ? element('p', {class: 'note'}, whole_way ? '' : 'This pass changed nothing here.') :
      element('pre', {}, ...lines(b.removed, '−', 'gone'), ...lines(b.added, '+', 'new')));
  }
  section('The graph before and after', 'What a pass takes away has a vermillion border, what it makes a green one. A repeat holds its body once. Parameters are not drawn; point at a node for shapes and attributes.', true,
    element('div', {class: 'controls'}, all,
      element('button', {type: 'button', onclick: save(0)}, 'SVG before'), element('button', {type: 'button', onclick: save(1)}, 'SVG after'),
      download('DOT as declared', `${data.model} before.dot`, 'text/vnd.graphviz', data.files.dot_before), download('DOT after all', `${data.model} after.dot`, 'text/vnd.graphviz', data.files.dot_after)),
    element('div', {class: 'graphs'}, element('div', {}, titles[0], before), element('div', {}, titles[1], after)), changes);
  drawings.push(show);
}

function explain_savings() {
  const of = (s, name) => s.cost ? s.cost[name] : null;
  const labels = data.stages.map((s, i) => i === 0 ? 'declared' : s.pass);
  const line = (name, title, i) => ({label: title, data: data.stages.map(s => of(s, name)), borderColor: colour(i), backgroundColor: colour(i), pointStyle: shape(i), borderWidth: 2, stepped: 'middle', pointRadius: 4, spanGaps: true});
  section('What each pass saves', 'Every stage planned as if it were run: bytes of operands and results, and the arena that results between steps need.', true,
    chart(() => ({
      type: 'line', data: {labels, datasets: [line('bytes', 'bytes read and written', 0), line('arena_bytes', 'arena', 1)]},
      options: {scales: {x: {ticks: {maxRotation: 60, minRotation: 30, autoSkip: false}, grid: {display: false}},
                         y: {...log_axis('bytes', bytes), afterBuildTicks: a => { const step = a.max / a.min > 200 ? 4 : 2; a.ticks = []; for (let t = 1; t <= a.max; t *= step) if (t >= a.min) a.ticks.push({value: t}); }, grace: '10%', ticks: {callback: bytes}}},
                plugins: {legend, tooltip: {callbacks: {label: c => ` ${c.dataset.label}: ${bytes(c.parsed.y)}`}}}},
    }), '', 'bytes and arena after each pass'),
    table([{name: 'number', title: '#', show: whole}, {name: 'pass', title: 'pass', text: true}, {name: 'rewrites', title: 'rewrites', show: whole}, {name: 'nodes', title: 'nodes', show: whole}, {name: 'steps', title: 'steps', show: whole},
           {name: 'flops', title: 'FLOPs', show: x => number(x)}, {name: 'executed', title: 'executed', show: x => number(x)}, {name: 'bytes', title: 'bytes', show: bytes}, {name: 'saved', title: 'bytes saved', show: bytes}, {name: 'arena', title: 'arena', show: bytes}],
      data.stages.map((s, i) => {
        const was = i ? of(data.stages[i - 1], 'bytes') : null, is = of(s, 'bytes');
        return {number: i, pass: i === 0 ? 'as declared' : s.pass, rewrites: s.rewrites, nodes: s.graph.nodes.length, steps: of(s, 'steps'), flops: of(s, 'flops'), executed: of(s, 'executed_flops'), bytes: is,
                saved: was !== null && is !== null ? Math.max(0, was - is) : null, arena: of(s, 'arena_bytes')};
      })));
}

function explain_memory() {
  const {buffers, arena_bytes: arena} = data.memory;
  if (!buffers.length) return;
  const steps = Math.max(...buffers.map(b => b.last_step)) + 1;
  const ops = [...new Set(buffers.map(b => b.name.split(' ')[0]))], box = element('div', {class: 'gantt'});
  drawings.push(() => {
    const left = 74, top = 8, width = Math.max(640, Math.min(1180, steps * 14)), height = 330;
    const x = s => left + (width - left - 8) * s / steps, y = a => top + (height - top - 32) * a / Math.max(arena, 1);
    const svg = element('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': 'memory plan', 'font-size': 11});
    for (let i = 0; i <= 4; ++i)
      svg.append(element('line', {x1: left, x2: width - 8, y1: y(arena * i / 4), y2: y(arena * i / 4), stroke: variable('--line')}),
                 element('text', {x: left - 6, y: y(arena * i / 4) + 4, 'text-anchor': 'end'}, bytes(Math.round(arena * i / 4))));
    for (let s = 0; s <= steps; s += Math.ceil(steps / 20)) svg.append(element('text', {x: x(s), y: height - 14, 'text-anchor': 'middle'}, String(s)));
    svg.append(element('text', {x: (left + width) / 2, y: height - 1, 'text-anchor': 'middle'}, 'step'));
    for (const b of buffers) {
      const i = ops.indexOf(b.name.split(' ')[0]), w = Math.max(x(b.last_step + 1) - x(b.first_step) - 1, 1), h = Math.max(y(b.offset + b.bytes) - y(b.offset) - 1, 1);
      svg.append(element('rect', {x: x(b.first_step), y: y(b.offset), width: w, height: h, fill: colour(i), 'fill-opacity': .8, stroke: variable('--card'), 'stroke-width': .5},
        element('title', {}, `${b.name}\n${bytes(b.bytes)} at ${b.offset.toLocaleString('en')}\nsteps ${b.first_step} to ${b.last_step}`)));
      if (w > 90 && h > 13) svg.append(element('text', {x: x(b.first_step) + 4, y: y(b.offset) + Math.min(h / 2 + 4, 15), 'pointer-events': 'none'}, cut(b.name, Math.floor(w / 6.6))));
    }
    box.replaceChildren(svg);
  });
  const key = element('div', {class: 'legend'});
  drawings.push(() => key.replaceChildren(...ops.map((o, i) => { const s = element('span', {class: 'swatch'}); s.style.background = colour(i); return element('span', {}, s, o); })));
  section('Memory plan', `The arena: ${bytes(arena)}, ${bytes(data.memory.arena_bytes_without_reuse)} if no result lay over an operand that dies there; workspaces ${bytes(data.memory.workspace_bytes)} beside it. A bar is a buffer: left to right from the step that writes it to the last that reads it, up and down where it lies.`, true, key, box);
}

function explain_nodes() {
  const runs = data.nodes.filter(n => n.kernel || n.steps || n.steps_at_bind).map(n => ({...n, backend: n.backend ? `${n.backend} ${n.isa || ''}` : null}));
  const text = x => x === null || x === undefined ? '–' : String(x);
  section('Kernel and backend of every node', 'Nodes without a kernel are views, or stand inside another\u2019s.', true,
    element('div', {class: 'controls'}, download('JSON', `${data.model}.json`, 'application/json', data.files.json)),
    table([{name: 'id', title: '#', show: whole}, {name: 'op', title: 'op', text: true, show: text}, {name: 'name', title: 'name', text: true, show: text}, {name: 'kernel', title: 'kernel', text: true, show: text},
           {name: 'backend', title: 'backend', text: true, show: text}, {name: 'form', title: 'form', text: true, show: text}, {name: 'steps', title: 'steps', show: whole}, {name: 'flops', title: 'FLOPs', show: x => number(x)},
           {name: 'executed_flops', title: 'executed', show: x => number(x)}, {name: 'bytes', title: 'bytes', show: bytes}], runs));
}

if (data.kind === 'explain') {
  header(data.title, data.summary, [...Object.entries(data.dims).map(([n, v]) => [n, v]), ['backend', `${data.backend} ${data.isa}`], ['threads', data.threads],
    ['CPU', data.head.machine.cpu], ['version', `${data.head.version}, commit ${data.head.commit}`], ['date', data.head.date]]);
  explain_graphs();
  explain_savings();
  explain_memory();
  explain_nodes();
  finish();
}
