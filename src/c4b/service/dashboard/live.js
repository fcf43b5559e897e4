// Polling: every two seconds while the page is visible, at growing intervals while it fails.

const PACE = 2_000; // milliseconds
const LONGEST = 60_000;

export class Live {
  #work;
  #report;
  #timer = null;
  #current = null;
  #failures = 0;
  #last = null;
  #wanted = false;
  paused = false;

  // `work(signal)` does one round; `report({problem, retryAt, last})` is called with the result.
  constructor(work, report) {
    this.#work = work;
    this.#report = report;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#halt();
      else if (this.#wanted) this.now();
    });
  }

  stop() {
    this.#wanted = false;
    this.#halt();
  }

  #halt() {
    clearTimeout(this.#timer);
    this.#current?.abort();
    this.#current = null;
  }

  async now() {
    this.#halt();
    this.#wanted = true;
    const current = new AbortController();
    this.#current = current;
    const began = performance.now();
    let problem = null;
    try {
      await this.#work(current.signal);
    } catch (error) {
      problem = error;
    }
    if (this.#current !== current) return; // another page was opened meanwhile
    const took = performance.now() - began;
    this.#failures = problem ? this.#failures + 1 : 0;
    if (!problem) this.#last = new Date();
    const delay = problem ? PACE * 2 ** (this.#failures - 1) : Math.max(PACE, 4 * took);
    const wait = Math.min(delay, LONGEST);
    this.#report({ problem, retryAt: Date.now() + wait, last: this.#last });
    if (!document.hidden && !(this.paused && !problem)) this.#timer = setTimeout(() => this.now(), wait);
  }
}
