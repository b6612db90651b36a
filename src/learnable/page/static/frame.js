// A report of the library in a frame as tall as it is. It runs no script: its own policy and the sandbox forbid it.

import { el } from "./dom.js";

export function reportFrame(address, title) {
  const frame = el("iframe", { src: address, title: `Report: ${title}`, class: "report", sandbox: "allow-same-origin", loading: "lazy" });
  const fit = () => {
    const page = frame.contentDocument?.documentElement;
    if (page) frame.style.height = `${Math.ceil(page.getBoundingClientRect().height) + 2}px`;
  };
  frame.addEventListener("load", () => {
    fit();
    const page = frame.contentDocument;
    if (!page) return;
    new ResizeObserver(fit).observe(page.documentElement);
    // Links within the report scroll the page, because the frame itself does not scroll.
    page.addEventListener("click", (event) => {
      const target = event.target.closest?.("a[href^='#']");
      const place = target && page.getElementById(target.getAttribute("href").slice(1));
      if (!place) return;
      event.preventDefault();
      scrollTo({ top: frame.getBoundingClientRect().top + scrollY + place.getBoundingClientRect().top - 80 });
    });
  });
  return frame;
}
