// The search runs in a worker, which browsers refuse to start for a page that was opened as a file. A frame without a
// page of its own does the same work: the script of the worker runs in it, and both sides send the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      const start = () => {
        document.body.append(this.frame);
        const inside = this.frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = inside.document.createElement("script");
        script.src = address;
        script.onload = () => {
          const waiting = this.waiting;
          this.waiting = null;
          waiting.forEach((data) => this.postMessage(data));
        };
        inside.document.head.append(script);
      };
      if (document.body) start();
      else addEventListener("DOMContentLoaded", start);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
