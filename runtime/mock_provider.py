"""A model provider on loopback for tests: it answers what it was told, and remembers what it was asked.

It speaks Chat Completions, Responses and Anthropic's Messages, so that a test has the real SDK, the real decoder and
real sockets in its path, and needs no key. It knows no agent and no SDK; what it writes is in `mock_wire`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, cast

from runtime.canonical import JsonObject
from runtime.errors import AguiBridgeError, ProtocolError, ProviderError
from runtime.mock_http import EVENT_STREAM, JSON_TYPE, Connection, HttpAnswer, Recorded
from runtime.mock_wire import Writer, api_of
from runtime.samples import AssistantMessageDone, Completed, Sample, TextDelta

KEY = "mock-key"

Line: TypeAlias = Sample | AguiBridgeError | asyncio.Event
"""What happens in a scripted answer: a sample is said, the provider fails, an event is waited for."""

Answer: TypeAlias = str | bytes | Path | HttpAnswer | ProviderError | Iterable[Line]
"""What the provider can be told to answer; see `MockProvider`."""


class MockProvider:
    """A provider that answers each request with the next of its answers; a context manager.

    An answer is

    - a text: the model says it, word by word;
    - a script, as `says` and `calls` make it: samples are written in the format of the API that was asked, an
      `asyncio.Event` is waited for, an error is how the provider fails: with an HTTP status if nothing was said
      before, else within the stream. A ProtocolError `stream_cut` (see `cut`) cuts the connection. A script
      without `Completed` ends the stream without any evidence that it was whole;
    - a ProviderError: the provider fails so (`code`, `retry_after_s`; `details["status"]` sets the status);
    - bytes, or the path of a file: an event stream as it is (`.json` is a JSON body);
    - an `HttpAnswer`.

    With `repeat` the last answer is given again and again; without, a request too many is refused with a message.
    `environ` has the variables that lead the SDKs here.
    """

    def __init__(self, *answers: Answer, repeat: bool = False) -> None:
        self.recorded: list[Recorded] = []
        self.connections = 0
        self.client_left = asyncio.Event()
        """Set when a client went away before its answer was over."""
        self._answers: list[Answer] = []
        self._repeat = repeat
        self._asked = 0
        self._port = 0
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._fault: Exception | None = None
        self.will_answer(*answers)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        """Close everything. Raises the error in a script that could not be played, so that no test misses it."""
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()
        if self._fault is not None and kind is None:
            raise self._fault

    # --- for the test ---------------------------------------------------------------------------------------------

    def will_answer(self, *answers: Answer) -> None:
        """Tell it more answers, behind those that it knows."""
        whole = (str, bytes, Path, HttpAnswer, ProviderError)
        self._answers += [answer if isinstance(answer, whole) else list(answer) for answer in answers]

    @property
    def origin(self) -> str:
        """Where it listens; what `ANTHROPIC_BASE_URL` is to be."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The base of its paths; what `OPENAI_BASE_URL` is to be."""
        return f"{self.origin}/v1"

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which the SDKs find it."""
        return environ_of(self.origin)

    @property
    def requests(self) -> list[JsonObject]:
        """The bodies of the requests, in order."""
        return [cast("JsonObject", one.body) for one in self.recorded]

    @property
    def paths(self) -> list[str]:
        """The paths of the requests, in order."""
        return [one.path for one in self.recorded]

    # --- a connection ---------------------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        try:
            while not connection.over and (request := await connection.request()) is not None:
                self.recorded.append(request)
                if not await self._answer(request, connection):
                    self.client_left.set()
        except ConnectionError:
            self.client_left.set()
        except Exception as error:  # noqa: BLE001  raised again when the test leaves the provider
            self._fault = self._fault or error
        finally:
            with suppress(ConnectionError):
                await connection.close()

    async def _answer(self, request: Recorded, connection: Connection) -> bool:
        """Answer the request; False if the client went away before that was over."""
        api = api_of(request.path) if request.method == "POST" else None
        if api is None:
            refused = f"The mock provider has nothing at {request.method} {request.path}."
            return await connection.play(HttpAnswer.json({"error": {"message": refused}}, 404))
        self._asked += 1
        answer = self._next()
        if isinstance(answer, ProviderError):
            answer = _failure(api, answer)
        if isinstance(answer, HttpAnswer):
            return await connection.play(answer)
        body = cast("JsonObject", request.body) if isinstance(request.body, dict) else {}
        if not body.get("stream"):
            refused = "The mock provider plays scripts as streams; tell it HttpAnswer.json(…) for plain answers."
            return await connection.play(_failure(api, ProviderError(refused, code="provider_bad_request")))
        end = next((line for line in answer if isinstance(line, Completed)), None)
        return await _play(api(str(body.get("model")), self._asked, end), answer, connection)

    def _next(self) -> HttpAnswer | ProviderError | list[Line]:
        told = len(self._answers)
        if self._asked > told and not (self._repeat and told):
            refused = f"The mock provider was told {told} answers; this is request {self._asked}."
            return ProviderError(refused, code="provider_bad_request")
        answer = self._answers[min(self._asked, told) - 1]
        match answer:
            case str():
                words = [TextDelta(word) for word in _words(answer)]
                return [*words, AssistantMessageDone(), Completed("stop")]
            case bytes():
                return HttpAnswer([answer])
            case Path():
                kind = JSON_TYPE if answer.suffix == ".json" else EVENT_STREAM
                return HttpAnswer([answer.read_bytes()], content_type=kind)
            case HttpAnswer() | ProviderError():
                return answer
            case _:
                return cast("list[Line]", answer)


async def _play(writer: Writer, lines: list[Line], connection: Connection) -> bool:
    """Play a script; False if the client went away before it was over."""
    for line in lines:
        if isinstance(line, asyncio.Event):
            if not await connection.wait(line):
                return False
        elif isinstance(line, AguiBridgeError):
            return await _fail(writer, line, connection)
        else:
            await connection.begin()
            await connection.say(writer.feed(line))
    await connection.begin()
    await connection.finish()
    return True


async def _fail(writer: Writer, error: AguiBridgeError, connection: Connection) -> bool:
    failure = error if isinstance(error, ProviderError) else ProviderError(error.message, code=error.code)
    is_cut = failure.code == "stream_cut"
    if not is_cut and not connection.begun:
        return await connection.play(_failure(type(writer), failure))
    await connection.begin()
    await connection.say(b"" if is_cut else writer.broken(failure))
    await connection.finish(cut=is_cut)
    return True


def environ_of(origin: str) -> dict[str, str]:
    """The variables that lead the SDKs to a server at this origin."""
    return {
        "OPENAI_BASE_URL": f"{origin}/v1",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": origin,
        "ANTHROPIC_API_KEY": KEY,
        "NO_PROXY": "127.0.0.1",
    }


def cut() -> ProtocolError:
    """A line of a script: the connection is cut here."""
    return ProtocolError("The connection was cut.", code="stream_cut", retryable=True)


def _words(text: str) -> list[str]:
    first, *more = text.split(" ")
    return [first, *(f" {word}" for word in more)]


def _failure(api: type[Writer], error: ProviderError) -> HttpAnswer:
    status, body = api.failure(error)
    return HttpAnswer.json(body, status, retry_after_s=error.retry_after_s)
