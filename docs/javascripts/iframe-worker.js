// Browsers start no worker from a file on disk. There, run the worker's script in a hidden frame instead, so that the
// search of these pages works without a server. Everything comes from this folder.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = String(address);
      script.onload = () => {
        this.ready = true;
        for (const data of this.waiting) this.postMessage(data);
      };
      script.onerror = () => this.dispatchEvent(new Event("error"));
      frame.contentDocument.body.append(script);
      this.frame = frame;
    }

    postMessage(data) {
      if (this.ready) this.inside.dispatchEvent(new MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
