"""What mitmproxy does with one request, with two things done otherwise.

In the path of every request, below the addons. A server may close a connection
that it had kept open in the moment in which the next request is sent on it:
the request is then sent once more on a fresh connection, as clients and
browsers do it themselves. And a tunnel takes the way out that `routing` has
chosen for it.
"""

from __future__ import annotations

from typing import Any

from mitmproxy.proxy.layers import http as layers
from mitmproxy.proxy.layers.http import HttpStream, SendHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseProtocolError,
)

from prefixguard.proxy.tap import SENT_AGAIN

# mitmproxy's layers are generators of commands, which it leaves without types.
type Commands = Any


class Stream(HttpStream):
    """One request and its response."""

    def handle_protocol_error(self, event: Any) -> Commands:
        """Send the request once more where that is safe, or else give the error on."""
        if not self._may_go_again(event):
            yield from super().handle_protocol_error(event)
            return
        self.flow.metadata[SENT_AGAIN] = True
        # The closed connection is not taken again: mitmproxy opens another.
        if not (yield from self.make_server_connection()):
            return
        request, server = self.flow.request, self.context.server
        content = request.raw_content
        whole = not (content or request.trailers)
        yield SendHttp(RequestHeaders(self.stream_id, request, whole), server)
        if content:
            yield SendHttp(RequestData(self.stream_id, content), server)
        if request.trailers:
            yield SendHttp(RequestTrailers(self.stream_id, request.trailers), server)
        yield SendHttp(RequestEndOfMessage(self.stream_id), server)

    def _may_go_again(self, event: Any) -> bool:
        """Whether the server hung up on a connection that it had kept open, before it said a word.

        A connection that was opened for this very request is another matter:
        the server may have taken the request and died of it.
        """
        if (
            not isinstance(event, ResponseProtocolError)
            or event.code is not ErrorCode.GENERIC_SERVER_ERROR
            or event.message != "server closed connection"
            or self.server_state != self.state_wait_for_response_headers
            or self.client_state != self.state_done
            or SENT_AGAIN in self.flow.metadata
        ):
            return False
        opened, request = self.flow.server_conn.timestamp_start, self.flow.request
        # The first request of a tunnel finds a connection that was opened for it, if a little earlier.
        reused = self.stream_id > 1 and opened is not None and opened < request.timestamp_start
        return reused and not request.stream

    def handle_connect_regular(self) -> Commands:
        """Open a tunnel, through another proxy where `routing` has named one."""
        if self.context.server.via is not None:
            yield from self.handle_connect_upstream()  # type: ignore[no-untyped-call]
        else:
            yield from super().handle_connect_regular()  # type: ignore[no-untyped-call]


def install() -> None:
    """Let mitmproxy use our streams; it has no option for that."""
    layers.HttpStream = Stream  # type: ignore[misc]
