// Light, dark or as the system says. Runs before the first paint, so that nothing flashes.
(() => {
  const ORDER = ["auto", "light", "dark"];
  const root = document.documentElement;

  function stored() {
    try {
      const told = localStorage.getItem("c4b-theme");
      return ORDER.includes(told) ? told : "auto";
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
