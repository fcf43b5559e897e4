// Light, dark or the setting of the system. Runs before the first paint, so that the page does not flash.
(() => {
  const ORDER = ["auto", "light", "dark"];
  const root = document.documentElement;

  function stored() {
    try {
      const stored = localStorage.getItem("c4b-theme");
      return ORDER.includes(stored) ? stored : "auto";
    } catch {
      return "auto"; // storage may be forbidden
    }
  }

  function apply(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${theme}`;
  }

  apply(stored());
  document.addEventListener("DOMContentLoaded", () => {
    apply(root.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      const next = ORDER[(ORDER.indexOf(root.dataset.theme) + 1) % ORDER.length];
      try {
        localStorage.setItem("c4b-theme", next);
      } catch {
        // then it lasts as long as the page
      }
      apply(next);
    });
  });
})();
