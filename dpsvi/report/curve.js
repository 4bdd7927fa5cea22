// Training curve: the measure of the run against time or items, with a readout.

const COLUMN = { step: 0, documents: 1, seconds: 2, value: 3 }; // of a point
const valueOf = (point) => point[COLUMN.value];
// Height at x of the line from one place to another.
const between = ([x0, y0], [x1, y1], x) => y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);

class TrainingCurve {
  constructor(figure, controls) {
    this.figure = figure;
    this.unit = "seconds"; // of the horizontal axis
    this.log = false;
    this.at = null; // index of the point being read, if any
    this.tip = html("div", { class: "tip", role: "status" });
    this.controls = controls;
    controls.addEventListener("change", ({ target }) => {
      if (target.type === "radio") this.unit = target.value;
      else this.log = target.checked;
      this.at = null;
      this.draw();
    });
    this.draw();
    new ResizeObserver(() => {
      if (figure.clientWidth !== this.drawnWidth) this.draw();
    }).observe(figure);
  }

  x(point) {
    return point[COLUMN[this.unit]];
  }

  // What the horizontal axis counts.
  unitName() {
    return this.unit === "documents" ? DATA.items : this.unit;
  }

  draw() {
    this.drawnWidth = this.figure.clientWidth;
    this.controls.hidden = !DATA.curves.length;
    if (this.controls.hidden) {
      this.figure.replaceChildren(html("p", { class: "empty" }, "Nothing recorded."));
      return;
    }
    // A log scale has no place for points at 0.
    const shown = DATA.curves
      .map((curve) => curve.points.filter((point) => !this.log || this.x(point) > 0))
      .map((points, i) => ({ label: DATA.curves[i].label, points, main: i === 0 }));
    const hidden = DATA.curves.reduce((n, curve, i) => n + curve.points.length
      - shown[i].points.length, 0);
    document.getElementById("curve-note").textContent = hidden
      ? `Points at 0 ${this.unitName()} have no place on a log scale: ${hidden} not shown.` : "";
    this.curves = shown.filter(({ points }) => points.length);
    if (!this.curves.length) {
      this.figure.replaceChildren();
      return;
    }
    this.layOut();
    this.hair = svg("line", { class: "hair", y1: this.box.top, y2: this.box.bottom });
    this.ring = svg("circle", { class: "ring", r: 5 });
    const picture = svg("svg", {
      viewBox: `0 0 ${this.width} ${this.height}`,
      role: "img",
      tabindex: 0,
      "aria-label": this.description(),
    });
    picture.append(...this.axes(), ...this.baseline());
    this.curves.slice().reverse().forEach((curve) => picture.append(...this.trace(curve)));
    picture.append(...this.names(), this.hair, this.ring);
    this.listen(picture);
    this.figure.replaceChildren(picture, this.tip);
    this.read(this.at);
  }

  layOut() {
    this.width = Math.max(280, this.drawnWidth);
    this.height = this.width < 600 ? 260 : 340;
    this.box = { top: 18, bottom: this.height - 44 };
    const points = this.curves.flatMap((curve) => curve.points);
    const xs = points.map((point) => this.x(point));
    const ys = points.map(valueOf).concat(DATA.baseline ?? []);
    const [low, high] = [smallest(ys), largest(ys)];
    const { log } = DATA.measure;
    const room = log ? (high / low) ** 0.06 : 0.06 * (high - low);
    const ends = log ? [low / room, high * room] : [low - room, high + room];
    this.toY = axis(ends, [this.box.bottom, this.box.top], log);
    this.rows = tickTexts(this.toY.ticks);
    // Several names need room beside the plot; a single one fits above its line.
    const longest = largest(this.curves.map((curve) => this.name(curve).length));
    this.box.right = this.width - (this.curves.length > 1 ? 7.2 * longest + 16 : 14);
    this.box.left = Math.max(58, 7.2 * largest(this.rows.map((text) => text.length)) + 12);
    this.toX = axis(
      [this.log ? smallest(xs) : 0, largest(xs)], [this.box.left, this.box.right], this.log,
    );
  }

  name({ label, points }) {
    return `${label} ${finer(valueOf(points[points.length - 1]), this.toY.ticks)}`;
  }

  place(point) {
    return [this.toX(this.x(point)), this.toY(valueOf(point))];
  }

  description() {
    const { label, points } = this.curves[0];
    const ends = [points[0], points[points.length - 1]].map((point) => plain(valueOf(point)));
    const unigram = DATA.baseline === null ? "" : `; unigram baseline ${plain(DATA.baseline)}`;
    return `${label} ${DATA.measure.name} against ${this.unitName()}, from ${ends.join(" to ")}${unigram}. `
      + "Left and right arrow keys read the points.";
  }

  axes() {
    const { left, right, bottom } = this.box;
    const rows = this.toY.ticks.flatMap((tick, i) => {
      const y = this.toY(tick);
      return [
        svg("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }),
        svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, this.rows[i]),
      ];
    });
    const columns = this.toX.ticks.flatMap((tick) => {
      const x = this.toX(tick);
      return [
        svg("line", { class: "grid", x1: x, x2: x, y1: bottom, y2: bottom + 5 }),
        svg("text", { x, y: bottom + 20, "text-anchor": "middle" }, short(tick)),
      ];
    });
    const middle = { x: (left + right) / 2, y: bottom + 40, "text-anchor": "middle" };
    return [...rows, ...columns, svg("text", middle, this.unitName())];
  }

  baseline() {
    if (DATA.baseline === null) return [];
    const { left, right } = this.box;
    const y = this.toY(DATA.baseline);
    const text = { class: "baseline-label", x: right, y: y - 7, "text-anchor": "end" };
    return [
      svg("line", { class: "baseline", x1: left, x2: right, y1: y, y2: y }),
      svg("text", text, `unigram baseline ${plain(DATA.baseline)}`),
    ];
  }

  trace({ points, main }) {
    const places = points.map((point) => this.place(point));
    const kind = main ? "main" : "";
    const dots = places.length > 60 ? places.slice(-1) : places; // more would hide the line
    const path = places.map((place, i) => (i ? "L" : "M") + place).join("");
    return [
      svg("path", { class: `line ${kind}`, d: path }),
      ...dots.map(([cx, cy]) => svg("circle", { class: `dot ${kind}`, cx, cy, r: main ? 3 : 2 })),
    ];
  }

  // Names at the ends of the lines; one that would overlap the name above is pushed down.
  names() {
    if (this.curves.length === 1) return [this.nameAbove(this.curves[0])];
    let last = -Infinity;
    return this.curves
      .map((curve) => ({ curve, end: this.place(curve.points[curve.points.length - 1]) }))
      .sort((a, b) => a.end[1] - b.end[1])
      .map(({ curve, end: [x, y] }) => {
        last = Math.max(y + 4, last + 15);
        const where = { x: x + 10, y: last, class: curve.main ? "main-label" : "" };
        return svg("text", where, this.name(curve));
      });
  }

  // The name of the only line, above all that the line has below it.
  nameAbove(curve) {
    const places = curve.points.map((point) => this.place(point));
    const width = 7.2 * this.name(curve).length;
    // A line that has just begun is shorter than its name.
    const x = Math.max(places[places.length - 1][0], this.box.left + width);
    const left = x - width;
    const first = places.findIndex((place) => place[0] >= left);
    const below = places.slice(first).map((place) => place[1]);
    if (first > 0) below.push(between(places[first - 1], places[first], left));
    const y = smallest(below) - 10;
    return svg("text", { x, y, "text-anchor": "end", class: "main-label" }, this.name(curve));
  }

  // Reads point `at` of the first curve: hair line, ring and tip; null clears them.
  read(at) {
    this.at = at;
    const point = at === null ? null : this.curves[0].points[at];
    [this.hair, this.ring].forEach((mark) => {
      mark.setAttribute("visibility", point ? "visible" : "hidden");
    });
    this.tip.textContent = point ? this.reading(point) : "";
    if (!point) return;
    const [x, y] = this.place(point);
    this.hair.setAttribute("x1", x);
    this.hair.setAttribute("x2", x);
    this.ring.setAttribute("cx", x);
    this.ring.setAttribute("cy", y);
    const room = this.tip.offsetWidth + 14;
    const left = x + room > this.width ? Math.max(0, x - room) : x + 14;
    this.tip.style.setProperty("left", `${left}px`);
  }

  reading(point) {
    const value = valueOf(point);
    const nats = minus((-Math.log(value)).toFixed(3));
    return [
      `${DATA.measure.name} ${finer(value, this.toY.ticks)}`,
      ...(DATA.measure.log ? [`${nats} nats per token`] : []),
      `${plain(point[COLUMN.seconds])} seconds`,
      `${whole(point[COLUMN.documents])} ${DATA.items}`,
      `step ${whole(point[COLUMN.step])}`,
    ].join("\n");
  }

  listen(picture) {
    const { points } = this.curves[0];
    picture.addEventListener("pointermove", (event) => {
      const bounds = picture.getBoundingClientRect();
      const pointer = ((event.clientX - bounds.left) * this.width) / bounds.width;
      const gaps = points.map((point) => Math.abs(this.toX(this.x(point)) - pointer));
      this.read(gaps.indexOf(smallest(gaps)));
    });
    picture.addEventListener("pointerleave", () => this.read(null));
    picture.addEventListener("blur", () => this.read(null));
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const from = this.at ?? (step > 0 ? -1 : points.length);
      this.read(Math.min(points.length - 1, Math.max(0, from + step)));
    });
  }
}
