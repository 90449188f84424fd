"""browser.py PORT QUERY: opens page.html in a headless Chromium and prints what the page has seen.

PORT is where this program serves the page on the loopback interface of its network."""
import http.server
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading


def main():
    port, query = int(sys.argv[1]), sys.argv[2]
    folder = pathlib.Path(__file__).parent
    seen, is_over = [], threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((folder / "page.html").read_bytes())

        def do_POST(self):
            seen.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()
            is_over.set()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    profile = tempfile.mkdtemp()
    browser = subprocess.Popen(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", "--autoplay-policy=no-user-gesture-required",
         "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
         f"http://127.0.0.1:{port}/?{query}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not is_over.wait(60):
            print('{"problem": "the page has said nothing for a minute"}')
            return 1
        print(seen[0])
        return 0
    finally:
        browser.terminate()
        try:
            browser.wait(10)
        except subprocess.TimeoutExpired:
            browser.kill()
        shutil.rmtree(profile, ignore_errors=True)


sys.exit(main())
