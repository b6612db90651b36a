// Requests to our own server. What changes something carries our header, which other origins cannot set.

const MARK = { "X-Learnable": "page" };

export class Refused extends Error {
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

async function answered(response) {
  let found = null;
  try {
    found = await response.json();
  } catch {
    found = null;
  }
  if (!response.ok) throw new Refused(found?.error ?? `The server answered ${response.status}.`, response.status);
  return found;
}

async function ask(path, options) {
  try {
    return await answered(await fetch(path, options));
  } catch (error) {
    if (error instanceof Refused || error.name === "AbortError") throw error;
    throw new Refused("The page's server does not answer: is `learnable page` still running?", 0);
  }
}

export const get = (path, signal) => ask(path, { signal });

export const post = (path, value = {}, signal) =>
  ask(path, { method: "POST", body: JSON.stringify(value), headers: { ...MARK, "Content-Type": "application/json" }, signal });

/** Send a file as it is; `told` hears how much is sent. */
export function send(path, file, told) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${path}?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("X-Learnable", "page");
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => event.lengthComputable && told?.(event.loaded / event.total);
    request.onload = () => {
      let found = null;
      try {
        found = JSON.parse(request.responseText);
      } catch {
        found = null;
      }
      if (request.status >= 200 && request.status < 300) resolve(found);
      else reject(new Refused(found?.error ?? `The server answered ${request.status}.`, request.status));
    };
    request.onerror = () => reject(new Refused("The file could not be sent: is `learnable page` still running?", 0));
    request.send(file);
  });
}

/** Follow a run's events; returns what ends that. Waits while the tab is hidden: a browser has few connections. */
export function follow(run, onEvent, onOver) {
  let source = null;
  let last = -1;
  let over = false;
  const open = () => {
    if (source || over) return;
    source = new EventSource(`/api/runs/${run}/events?after=${last}`);
    source.onmessage = (event) => {
      const number = Number(event.lastEventId);
      if (number <= last) return;
      last = number;
      onEvent(JSON.parse(event.data));
    };
    source.addEventListener("over", (event) => {
      over = true;
      close();
      onOver(JSON.parse(event.data));
    });
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const watch = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", watch);
  watch();
  return () => {
    over = true;
    document.removeEventListener("visibilitychange", watch);
    close();
  };
}
