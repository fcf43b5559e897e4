// Asks again and again: every two seconds while the page is seen, ever more rarely while it fails.

const PACE = 2_000; // milliseconds
const LONGEST = 60_000;

export class Live {
  #work;
  #tell;
  #timer = null;
  #current = null;
  #failures = 0;
  #last = null;
  #wanted = false;
  paused = false;

  // `work(signal)` does one round; `tell({problem, retryAt, last})` hears how it went.
  constructor(work, tell) {
    this.#work = work;
    this.#tell = tell;
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
    this.#tell({ problem, retryAt: Date.now() + wait, last: this.#last });
    if (!document.hidden && !(this.paused && !problem)) this.#timer = setTimeout(() => this.now(), wait);
  }
}
