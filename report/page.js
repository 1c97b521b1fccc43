// What every page shares: the data, elements, numbers as text, colours, charts, tables and downloads. Text reaches the
// page through textContent alone, so no name can become markup.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const drawings = [];  // what has to be drawn again in other colours

function element(tag, attributes = {}, ...children) {
  const svg = ['svg', 'g', 'rect', 'line', 'path', 'text', 'title', 'polygon', 'circle'].includes(tag);
  const e = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) e.setAttribute(name, value);
  }
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

function section(title, about, wide, ...children) {
  const s = element('section', {class: wide ? 'wide' : null, id: title.toLowerCase().replace(/[^a-z0-9]+/g, '-')},
                    element('h2', {}, title), about ? element('p', {class: 'quiet'}, about) : null, ...children);
  document.getElementById('main').append(s);
  return s;
}

// ---- numbers; null is what was not known, or no number
const number = (x, digits = 3) => x === null || x === undefined ? '–' : !isFinite(x) ? String(x) :
    x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6) ? x.toExponential(Math.max(digits - 2, 1)) :
    Number(x.toPrecision(digits)).toLocaleString('en', {maximumSignificantDigits: Math.max(digits, 15)});
const scientific = x => x === null || x === undefined ? '–' : x === 0 ? '0' : x.toExponential(2);
const whole = x => x === null || x === undefined ? '–' : x.toLocaleString('en');
function bytes(x) {
  if (x === null || x === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; x >= 1024 && i < units.length - 1; ++i) x /= 1024;
  return `${Number(x.toPrecision(3))} ${units[i]}`;
}
const milliseconds = x => x === null || x === undefined ? '–' : x >= 1000 ? `${number(x / 1000)} s` : `${number(x)} ms`;

// ---- colours of Okabe and Ito (2008), lighter ones on dark; beyond eight, lines are dashed
const light_colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#4d4d4d', '#8a7d00'];
const dark_colours = ['#4da3e0', '#f0803c', '#2fc79a', '#e39cc4', '#f0b93a', '#8fd0f5', '#d0d0d0', '#d9cc3c'];
const shapes = ['circle', 'rect', 'triangle', 'rectRot', 'rectRounded', 'star', 'crossRot', 'cross'];
const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
let printing = false;
const is_dark = () => dark.matches && !printing;
const colour = i => (is_dark() ? dark_colours : light_colours)[i % 8];
const shape = i => shapes[(i + Math.floor(i / 8)) % 8];
const dash = i => dashes[Math.floor(i / 8) % 4];
const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- charts
/// A canvas with a chart that `options()` describes, again whenever the colours change.
function chart(options, kind = '', label = '') {
  const canvas = element('canvas', {role: 'img', 'aria-label': label});
  const box = element('div', {class: `chart ${kind}`}, canvas);
  let drawn = null;
  const draw = () => {
    if (drawn) drawn.destroy();
    Chart.defaults.color = variable('--text');
    Chart.defaults.borderColor = variable('--line');
    Chart.defaults.font.family = getComputedStyle(document.documentElement).fontFamily;
    Chart.defaults.font.size = 12;
    const o = options();
    o.options = {animation: false, maintainAspectRatio: false, ...o.options};
    drawn = new Chart(canvas, o);
    canvas.dataset.drawn = String(o.data.datasets.length);
  };
  drawings.push(draw);
  box.redraw = draw;
  return box;
}

/// Ticks of a logarithmic axis: 1, 2 and 5 of each decade where they are few, else decades.
function log_axis(title, text = x => number(x)) {
  return {
    type: 'logarithmic', title: {display: true, text: title}, grid: {color: variable('--line')},
    ticks: {maxRotation: 0, autoSkip: true, autoSkipPadding: 12, callback: (x, i, all) => {
      const lead = x / Math.pow(10, Math.floor(Math.log10(x) + 1e-9));
      const decades = Math.log10(all[all.length - 1].value / all[0].value);
      return Math.abs(lead - 1) < 1e-6 || (decades < 3 && (Math.abs(lead - 2) < 1e-6 || Math.abs(lead - 5) < 1e-6)) ? text(x) : '';
    }},
  };
}
const lengths_axis = lengths => ({
  type: 'logarithmic', title: {display: true, text: 'length (tokens)'}, grid: {color: variable('--line')},
  min: lengths[0] / 1.15, max: lengths[lengths.length - 1] * 1.15,
  afterBuildTicks: axis => { axis.ticks = lengths.map(value => ({value})); },
  ticks: {maxRotation: 0, autoSkip: true, autoSkipPadding: 10, callback: x => x.toLocaleString('en')},
});
const legend = {position: 'bottom', labels: {usePointStyle: true, boxHeight: 7, padding: 12}};

// ---- tables
/// `columns`: {name, title, show?, text?}. A click on a heading sorts; what is not known stays last.
function table(columns, rows, swatch) {
  let by = -1, up = true;
  const body = element('tbody');
  const heads = columns.map((c, i) => {
    const b = element('button', {type: 'button', title: c.about, onclick: () => { up = by === i ? !up : !!c.text; by = i; fill(); }}, c.title);
    return element('th', {class: c.text ? 'text' : null, scope: 'col'}, b);
  });
  const fill = () => {
    const order = [...rows];
    if (by >= 0) order.sort((a, b) => {
      const x = a[columns[by].name], y = b[columns[by].name];
      if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
      if (y === null || y === undefined) return -1;
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    heads.forEach((h, i) => h.setAttribute('aria-sort', i !== by ? 'none' : up ? 'ascending' : 'descending'));
    heads.forEach((h, i) => { h.firstChild.textContent = columns[i].title + (i !== by ? '' : up ? ' ▲' : ' ▼'); });
    body.replaceChildren(...order.map(r => element('tr', {}, ...columns.map((c, i) => {
      const cell = element('td', {class: c.text ? 'text' : null}, (c.show || String)(r[c.name]));
      if (i === 0 && swatch) {
        const s = element('span', {class: 'swatch'});
        s.style.background = swatch(r);
        cell.prepend(s);
      }
      return cell;
    }))));
  };
  fill();
  drawings.push(fill);
  return element('div', {class: 'scroll'}, element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body));
}

function download(label, name, type, text) {
  return element('button', {type: 'button', onclick: () => {
    const url = URL.createObjectURL(new Blob([text], {type}));
    const a = element('a', {href: url, download: name});
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }}, label);
}

/// A list to choose from; `chosen` is called with an item's number, first with 0. Nothing to see if there is one.
function choose(label, names, chosen, first = 0) {
  const s = element('select', {'aria-label': label, onchange: () => chosen(s.selectedIndex)},
                    ...names.map(n => element('option', {}, n)));
  s.selectedIndex = first;
  return names.length > 1 ? element('label', {}, `${label} `, s) : element('span', {class: 'note'}, names[0] || '');
}

function machine(facts) {
  return element('dl', {class: 'machine'}, ...facts.filter(f => f[1] !== null && f[1] !== undefined && f[1] !== '')
    .map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, String(value)))));
}

function header(title, about, facts) {
  document.title = title;
  document.getElementById('header').append(element('h1', {}, title), about ? element('p', {class: 'quiet'}, about) : null, machine(facts));
}

/// Called last: links to the sections, and everything drawn.
function finish() {
  const links = [...document.querySelectorAll('main > section')].map(s => element('a', {href: `#${s.id}`}, s.querySelector('h2').textContent));
  document.getElementById('header').append(element('nav', {}, ...links));
  const h = data.head;
  document.getElementById('footer').append(`Written by treadle ${h.version} (${h.compiler}, commit ${h.commit}) at ${h.date}. This page loads nothing: it can be kept, sent and printed.`);
  const all = () => drawings.forEach(d => d());
  all();
  dark.addEventListener('change', all);
  window.addEventListener('beforeprint', () => { printing = true; all(); });
  window.addEventListener('afterprint', () => { printing = false; all(); });
  document.body.dataset.ready = 'yes';
}
