"""Ask the studio of the installed package for its page: `make test-wheel` runs this where the sources are not."""

import threading
import urllib.request

from pdofm.studio import Studio

with Studio() as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("", "studio.js", "form.js", "picture.js", "sketch.js", "presets.js", "studio.css"):
        with urllib.request.urlopen(server.url + name) as answer:  # our own address
            assert answer.status == 200, name
            assert len(answer.read()) > 500, name
    server.shutdown()
print("the studio answers")
