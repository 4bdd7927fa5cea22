// The page of a run that goes on: it asks for itself again, and draws what has changed.

const SECONDS = 2;
const LIVE = "live";

class Live {
  constructor() {
    this.status = html("span", { class: "live", role: "status" });
    document.querySelector(".eyebrow").append(" ", this.status);
    this.changed = Date.parse(document.lastModified); // the run, not the page
    this.say();
    setInterval(() => this.look(), 1000 * SECONDS);
  }

  say(trouble = "") {
    const text = trouble || this.state();
    if (this.status.textContent !== text) this.status.textContent = text;
    this.status.classList.toggle("going", text === LIVE);
  }

  // A run that was killed cannot say so; the page says for how long it has written nothing.
  state() {
    if (DATA.ended) return "the run has ended";
    const minutes = Math.floor((Date.now() - this.changed) / 60000);
    if (minutes < 1) return LIVE;
    const long = minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
    return `nothing new for ${long}`;
  }

  async look() {
    if (this.looking) return; // the last answer has not come yet
    this.looking = true;
    try {
      const answer = await fetch(window.location.href, { cache: "no-store" });
      const text = await answer.text();
      this.changed = Date.parse(answer.headers.get("Last-Modified")) || this.changed;
      if (answer.ok) this.take(new DOMParser().parseFromString(text, "text/html"));
      else this.say(text);
    } catch {
      this.say("dpsvi watch has ended; this is what it showed last");
    } finally {
      this.looking = false;
    }
  }

  take(fresh) {
    const data = JSON.parse(fresh.getElementById("run-data").textContent);
    // Curves are drawn again; all else changes once, such as topics when the run has ended.
    const frame = ({ curves, baseline, ended, ...rest }) => JSON.stringify(rest);
    if (frame(data) !== frame(DATA)) {
      window.location.reload();
      return;
    }
    const changed = JSON.stringify(data) !== JSON.stringify(DATA);
    Object.assign(DATA, data);
    const parts = fresh.querySelectorAll("[data-live]");
    document.querySelectorAll("[data-live]").forEach((part, i) => {
      if (part.innerHTML !== parts[i].innerHTML) part.replaceChildren(...parts[i].childNodes);
    });
    if (changed) curve.draw();
    this.say();
  }
}

new Live();
