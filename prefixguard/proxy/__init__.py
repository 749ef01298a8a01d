"""The proxy: passes an agent's requests on unchanged, and tells a recorder what passed.

Two processes. The proxy process routes, copies bytes, masks secrets and puts
captures on a bounded queue (`upstreams`, `routing`, `tap`, `link`). The
recorder process stores and analyses them and answers with one event per turn
(`frames`, `recorder`). Nothing that happens to the recorder can fail or delay
a request.
"""
