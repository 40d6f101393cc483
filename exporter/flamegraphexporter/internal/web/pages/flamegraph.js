// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// The page of a flame graph. d3-flame-graph draws the frames. The server sends the frames that are wide enough, and more
// of a part when a person looks at it alone. The address of the page has everything that the picture depends on.
'use strict';

{
  const element = id => document.getElementById(id);
  const chartElement = element('chart');
  const controls = element('controls');
  const cellHeight = matchMedia('(pointer: coarse)').matches ? 28 : 20;

  let view; // the data of the server
  let alone = null; // the node that is shown alone, or that of everything
  let current = null; // the node that the keys have reached
  let chosenGroup = -1; // of the legend
  const drawn = new Map(); // the element of each node that is drawn

  // Texts.

  const count = n => n.toLocaleString('en');
  const many = (n, thing) => `${count(n)} ${thing}${n === 1 ? '' : 's'}`;
  const share = (part, whole) => (whole > 0 ? 100 * part / whole : 0).toLocaleString('en', {maximumSignificantDigits: 3}) + '%';
  const units = {
    nanoseconds: [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']],
    bytes: [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']],
  };
  units.ns = units.nanoseconds;
  units.By = units.bytes;

  function amount(value, unit) {
    const steps = units[unit];
    if (!steps) return count(value) + (unit && unit !== 'count' ? ' ' + unit : '');
    const [size, name] = steps.find(([size]) => Math.abs(value) >= size) ?? steps.at(-1);
    return (value / size).toLocaleString('en', {maximumSignificantDigits: 4}) + ' ' + name;
  }

  // valueText is a value of the picture, with the name of its type.
  const valueText = value => view.unit === 'count' ? count(value) + ' ' + controls.elements.si.value : amount(value, view.unit);

  // shadeOf is one of three shades for a function of a group. Those of a class, or of another namespace, have the same.
  function shadeOf(name) {
    let hash = 0;
    for (const letter of name.slice(0, Math.max(name.lastIndexOf('.'), name.lastIndexOf(':'), 0))) hash = (hash * 31 + letter.codePointAt(0)) | 0;
    return Math.abs(hash) % 3;
  }

  // short is a Java method without its package: Cart.add of com.example.Cart.add.
  const part = String.raw`[\p{L}\p{M}\p{N}_$/<>-]+`;
  const packages = new RegExp(String.raw`^(?:${part}\.)+(?=${part}\.${part}(?: \(truncated\))?$)`, 'u');
  const short = name => name.replace(packages, '');

  const marks = {
    truncated: 'the end of these calls was not seen',
    missing: 'the callers of these calls were not seen: they have not ended, or were lost',
    folded: 'the collector had no room for these paths, and added them up',
    deep: 'deeper calls, added up',
    small: 'paths without frames of their own, added up: click to see the caller alone, where more have one',
  };

  // describe returns what is known of a frame, in two lines.
  function describe(data) {
    if (!data.frame) return `everything\n${valueText(view.whole)} in ${many(view.paths, 'path')}`;
    const {frame, of} = data;
    const lines = [of.n + (of.f ? ` (${of.f})` : '') + (of.g >= 0 ? ` – ${view.groups[of.g].n}` : '')];
    const texts = [share(frame.v, view.whole) + ' of the picture', many(frame.c, view.isCalls ? 'call' : 'sample')];
    if (frame.e) texts.push(`${count(frame.e)} failed (${share(frame.e, frame.c)})`);
    texts.push(amount(frame.t, view.timeUnit) + ' with callees', amount(frame.s, view.timeUnit) + ' itself');
    if (frame.k) texts.unshift(many(frame.k, 'path'));
    if (of.m) texts.push(marks[of.m]);
    return lines[0] + '\n' + texts.join(' · ');
  }

  function showDetails(text) {
    const [name, values] = text.split('\n');
    const bold = document.createElement('b');
    bold.textContent = name;
    element('details').replaceChildren(bold, document.createElement('br'), values);
  }

  // The address.

  const query = () => new URLSearchParams(location.search);

  function addressWith(changes) {
    const q = query();
    for (const [name, value] of Object.entries(changes)) {
      if (value) q.set(name, value);
      else q.delete(name);
    }
    const text = q.toString();
    return location.pathname + (text && '?' + text);
  }

  function go(changes, how = 'pushState') {
    history[how](null, '', addressWith(changes));
    load();
  }

  let loading = new AbortController();

  async function load() {
    loading.abort();
    const mine = loading = new AbortController();
    const q = query();
    q.set('width', Math.round(chartElement.clientWidth));
    try {
      const answer = await fetch('flamegraph.json?' + q, {signal: mine.signal});
      if (!answer.ok) throw new Error((await answer.text()).trim());
      const data = await answer.json();
      if (!mine.signal.aborted) show(data);
    } catch (failed) {
      if (mine.signal.aborted) return;
      element('status').textContent = 'The picture is that of before: ' + failed.message;
      element('status').className = 'failed';
      element('all').disabled = false;
    }
  }

  // The picture.

  const chart = flamegraph()
    .inverted(true)
    .cellHeight(cellHeight)
    .minFrameSize(0.5)
    .resetHeightOnZoom(true)
    .getName(d => short(d.data.n))
    .setLabelHandler(d => describe(d.data))
    .setDetailsHandler(text => showDetails(text ?? describe((current ?? alone).data)))
    .setColorMapper(() => null) // the style sheet has the colours
    .tooltip(Object.assign(withoutTransitions, {show() {}, hide() {}})) // the details are below the picture
    .onClick(choose);

  // withoutTransitions lets the library draw at once. Its new frames else grow for a quarter of a second, whatever its
  // transitionDuration is, and frames of another size wait for a timer. The library calls the function with a selection of its
  // own before it draws.
  function withoutTransitions(selection) {
    const itself = function () { return this; };
    Object.assign(selection.constructor.prototype, {transition: itself, duration: itself, ease: itself, delay: itself});
  }

  // treeOf returns the data as the library reads it.
  function treeOf(view) {
    const all = {n: 'everything', v: view.whole, c: []};
    const nodes = view.frames.map(frame => ({n: view.functions[frame.f].n, v: frame.v, c: [], frame, of: view.functions[frame.f]}));
    nodes.forEach(node => (node.frame.p < 0 ? all : nodes[node.frame.p]).c.push(node));
    return all;
  }

  function show(data) {
    view = data;
    const root = treeOf(view);
    chart.width(chartElement.clientWidth);
    const container = d3.select(chartElement).datum(root);
    if (drawn.size === 0) container.call(chart);
    else chart.update(root);
    alone = container.datum();
    for (let place = view.at, path = []; ; place = view.frames[place].p) {
      if (place >= 0) {
        path.push(place);
        continue;
      }
      alone = path.reduce(node => node.children[0], alone); // the callers have one callee each
      break;
    }
    current = null;
    decorate();
    showTexts();
    showLegend();
    performance.mark('flame graph shown');
    document.body.dataset.shown = (Number(document.body.dataset.shown) || 0) + 1;
  }

  // decorate adds to each frame what the library does not know. The library sets the class of each when it draws.
  function decorate() {
    drawn.clear();
    const width = chartElement.clientWidth;
    d3.select(chartElement).selectAll('svg > g').each(function (node) {
      drawn.set(node, this);
      const {frame, of} = node.data;
      const names = this.classList;
      names.add(!of ? 'whole' : of.g >= 0 ? 'g' + of.g : 'plain');
      if (of?.g >= 0) names.add('s' + shadeOf(of.n));
      if (of?.m === 'truncated') names.add('truncated');
      if (frame?.x) names.add('found');
      if (node === current) names.add('current');
      if (node !== alone && view.at >= 0 && node.depth < alone.depth) names.add('fade');
      if (chosenGroup >= 0 && of?.g !== chosenGroup) names.add('faint');
      let bar = this.querySelector('rect.errors');
      if (!frame?.e) {
        bar?.remove();
        return;
      }
      bar ??= this.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'rect'));
      bar.setAttribute('class', 'errors');
      bar.setAttribute('y', cellHeight - 4);
      bar.setAttribute('height', 3);
      bar.setAttribute('width', Math.max(1, (node.x1 - node.x0) * width * Math.min(1, frame.e / Math.max(1, frame.c))));
    });
  }

  function showTexts() {
    const q = query();
    controls.elements.si.value = q.get('si') || controls.elements.si.querySelector('[selected]').value;
    const status = [`${many(view.paths, 'path')}, ${valueText(view.whole)}.`];
    if (view.folded) {
      status.push(`${count(view.folded)} of them are too narrow or too many to have frames: grey frames add them up. Show a frame alone to see more of it.`);
    }
    if (view.leftOut) status.push(`The address leaves out ${valueText(view.leftOut)}.`);
    if (view.whole === 0) status.push('There is nothing to show with this value.');
    if (view.found) {
      status.push(`Found: ${many(view.found.functions, 'function')} in ${many(view.found.paths, 'path')}, with ${share(view.found.value, view.whole)} of the value, also in folded paths.`);
    }
    element('status').textContent = status.join(' ');
    element('status').className = '';
    element('missing').replaceChildren(...view.missing.map(text => {
      const item = document.createElement('p');
      item.className = 'note';
      item.tabIndex = 0; // on a phone it shows the rest
      item.textContent = text;
      return item;
    }));
    if (document.activeElement !== controls.elements.q) controls.elements.q.value = q.get('q') ?? '';
    element('out').disabled = element('all').disabled = view.at < 0;
    const refined = element('refined');
    refined.hidden = view.refined.length === 0;
    refined.replaceChildren(view.refined.join(' · ') + ' ', link('remove', addressWith({f: '', i: '', h: '', s: '', sf: '', at: ''})));
    showAlone();
    showDetails(describe(alone.data));
  }

  function link(text, address) {
    const a = document.createElement('a');
    a.textContent = text;
    a.href = address;
    return a;
  }

  // showAlone offers what to do with the function that is shown alone.
  function showAlone() {
    const paragraph = element('alone');
    paragraph.hidden = view.at < 0;
    if (view.at < 0) return;
    const name = alone.data.n;
    const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const expression = '^' + escaped + '$';
    const bold = document.createElement('b');
    bold.textContent = name;
    paragraph.replaceChildren('Shown alone: ', bold, ' · ',
      link('all stacks with this function', addressWith({f: expression, at: ''})), ' · ',
      link('hide this function', addressWith({h: expression, at: ''})), ' · ',
      link('its callers and callees', 'peek?' + new URLSearchParams({f: `(^| )${escaped}( |$)`}))); // it matches the place, too
  }

  function showLegend() {
    const used = new Set(view.frames.map(frame => view.functions[frame.f]));
    const total = view.groups.reduce((sum, group) => sum + group.v, 0);
    const items = view.groups.map((group, i) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'g' + i;
      button.textContent = `${group.n} ${share(group.v, total)}`;
      button.title = 'Value of these functions alone, as a part of the whole tree. Click to find them.';
      button.setAttribute('aria-pressed', i === chosenGroup);
      button.addEventListener('click', () => {
        chosenGroup = chosenGroup === i ? -1 : i;
        chart.update();
        decorate();
        showLegend();
        element('legend').children[i].focus();
      });
      return button;
    });
    const sign = (text, name, title) => {
      const item = document.createElement('span');
      item.className = 'sign ' + name;
      item.textContent = text;
      item.title = title;
      items.push(item);
    };
    const names = {small: 'smaller paths', missing: 'callers not seen', folded: 'folded for lack of room', deep: 'deeper calls', truncated: 'truncated calls'};
    for (const [mark, text] of Object.entries(names)) {
      if ([...used].some(of => of.m === mark)) sign(text, '', marks[mark]);
    }
    if (view.frames.some(frame => frame.e)) sign('failed calls', 'failed', 'the red bar is the part of the calls that failed');
    element('legend').replaceChildren(...items);
  }

  // What a person does.

  function choose(node) {
    const target = node.data.of?.m === 'small' ? node.parent : node;
    const id = target.data.frame?.i ?? '';
    decorate();
    if (id === (query().get('at') ?? '')) load(); // the library has shown another part
    else go({at: id});
  }

  function zoomOut() {
    if (view.at >= 0) go({at: alone.parent?.data.frame?.i ?? ''});
  }

  // neighbour is the next frame of the same depth, to the left (-1) or right (1).
  function neighbour(node, direction) {
    const level = [...drawn.keys()].filter(other => other.depth === node.depth).sort((a, b) => a.x0 - b.x0);
    return level[level.indexOf(node) + direction];
  }

  function widestCallee(node) {
    return (node.children ?? []).filter(child => drawn.has(child)).reduce((a, b) => (a && a.value >= b.value ? a : b), null);
  }

  function moveTo(node) {
    if (!node || !drawn.has(node)) return;
    drawn.get(current)?.classList.remove('current');
    current = node;
    const shown = drawn.get(node);
    shown.classList.add('current');
    shown.scrollIntoView({block: 'nearest'});
    showDetails(describe(node.data));
  }

  const keys = {
    ArrowUp: () => moveTo((current ?? alone).parent),
    ArrowDown: () => moveTo(current ? widestCallee(current) : alone),
    ArrowLeft: () => moveTo(current && neighbour(current, -1)),
    ArrowRight: () => moveTo(current && neighbour(current, 1)),
    Enter: () => current && choose(current),
    ' ': () => current && choose(current),
    Escape: zoomOut,
    Backspace: zoomOut,
    Home: () => go({at: ''}),
  };
  chartElement.addEventListener('keydown', event => {
    const key = keys[event.key];
    if (!key || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    key();
  });
  addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    controls.elements.q.focus();
    controls.elements.q.select();
  });

  let typing;
  controls.elements.q.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => go({q: controls.elements.q.value}, 'replaceState'), 250);
  });
  controls.elements.si.addEventListener('change', () => go({si: controls.elements.si.value}));
  controls.addEventListener('submit', event => {
    event.preventDefault();
    clearTimeout(typing);
    go({q: controls.elements.q.value, si: controls.elements.si.value});
  });
  element('out').addEventListener('click', zoomOut);
  element('all').addEventListener('click', () => go({at: ''}));
  addEventListener('popstate', load);

  show(JSON.parse(element('view').textContent));
  let width = chartElement.clientWidth;
  if (width < 1000 || width > 1400) load(); // the server folded for another width
  let resizing;
  new ResizeObserver(() => {
    if (chartElement.clientWidth === width) return;
    width = chartElement.clientWidth;
    clearTimeout(resizing);
    resizing = setTimeout(load, 100);
  }).observe(chartElement);
}
