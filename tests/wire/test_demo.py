"""The demo agent over a real socket: every tool, every phrase, every command, and nonsense."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from typing import Any

from agui_bridge.demo import demo_agent
from agui_bridge.demo.phrases import phrases
from tests.serving import Answer, JsonObject, Served, ask, serving

THREADS = count(1)


def script(*rounds: Any) -> str:
    return "/script " + json.dumps({"rounds": list(rounds)})


def call(name: str, **arguments: Any) -> JsonObject:
    return {"name": name, "arguments": arguments}


def text(answer: Answer) -> str:
    return "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")


def results(answer: Answer) -> list[str]:
    """The outputs, in the order of the calls."""
    outputs = {event["toolCallId"]: event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"}
    return [outputs[event["toolCallId"]] for event in answer.events if event["type"] == "TOOL_CALL_START"]


def called(answer: Answer) -> list[str]:
    return [event["toolCallName"] for event in answer.events if event["type"] == "TOOL_CALL_START"]


async def say(served: Served, words: str, **more: Any) -> Answer:
    """Ask it on a thread of its own."""
    answer = await served.run(ask(words, thread=f"t{next(THREADS)}", **more))
    assert answer.status == 200
    return answer


# --- tools --------------------------------------------------------------------------------------------------------


async def test_every_tool_does_what_it_says():
    calls = [
        call("get_weather", city="Oslo"),
        call("get_time", tz="Tokyo"),
        call("get_time", tz="UTC-3"),
        call("add_todo", text="milk"),
        call("slow_tool", seconds=0.01),
        call("failing_tool"),
    ]
    async with serving(demo_agent()) as served:
        answer = await say(served, script({"tool_calls": calls}, {"text": "All done."}))
        weather, tokyo, west, todo, slow, failed = results(answer)
        assert json.loads(weather) == {"city": "Oslo", "conditions": "cloudy", "temperature": 17, "unit": "°C"}
        assert json.loads(tokyo)["time"] == "21:00"
        assert json.loads(west) == {"tz": "UTC-3", "time": "09:00", "offset": "UTC-03:00"}
        assert (todo, slow) == ("Added. There are 1 things to do.", "Waited 0.01 seconds.")
        assert "always fails" in failed or "RuntimeError" in failed
        assert text(answer) == "All done."
        assert answer.types[-1] == "RUN_FINISHED"


async def test_tools_that_are_misused_say_what_is_wrong():
    calls = [
        call("get_time", tz="Atlantis"),
        call("get_time", tz="+99"),
        call("get_time", tz="nan"),
        call("get_weather"),
        {"name": "get_weather", "arguments": "{not json"},
        call("no_such_tool"),
    ]
    async with serving(demo_agent()) as served:
        answer = await say(served, script({"tool_calls": calls}))
        outputs = results(answer)
        assert len(outputs) == len(calls)
        assert "Atlantis" in outputs[0]
        assert all("less than 24 hours" in output for output in outputs[1:3])
        assert "city" in outputs[3]
        assert answer.types[-1] == "RUN_FINISHED"
        for state in ({"todos": 5}, [1, 2]):
            answer = await say(served, script({"tool_calls": [call("add_todo", text="milk")]}), state=state)
            assert "something else" in results(answer)[0]


# --- phrases ------------------------------------------------------------------------------------------------------


async def test_plain_words_are_understood():
    spoken = {
        "Hello there": ([], "Hello! I am the demo agent"),
        "What is the weather in Oslo?": (["get_weather", "get_time"], "In Oslo it is cloudy at 17 °C"),
        "weather for new york": (["get_weather", "get_time"], "the demo's clock says 07:00"),
        "the weather in Nowhere-upon-Sea, please": (["get_weather", "get_time"], "the demo's clock says 12:00"),
        "Please add milk to my list": (["add_todo"], "Done, it is on your list."),
        "remind me to breathe.": (["add_todo"], "Done, it is on your list."),
        "please fail": (["failing_tool"], "As expected, that tool failed."),
        "Think about it": ([], "I have thought about it"),
        "Purple monkey dishwasher": ([], "You said: Purple monkey dishwasher"),
    }
    async with serving(demo_agent()) as served:
        for words, (tools, reply) in spoken.items():
            answer = await say(served, words)
            assert (called(answer), answer.types[-1]) == (tools, "RUN_FINISHED")
            assert reply in text(answer)
        thinking = await say(served, "think")
        assert "REASONING_MESSAGE_CONTENT" in thinking.types
        listed = await say(served, "Please add milk to my list")
        (state,) = [event for event in listed.events if event["type"].startswith("STATE_")]
        assert "milk" in json.dumps(state)


def test_a_slow_tool_is_called_by_those_who_ask_to_wait_if_it_is_there():
    calls = [{"name": "slow_tool", "arguments": {"seconds": 3}}]
    assert phrases("please wait", 1, frozenset({"slow_tool"})) == {"tool_calls": calls}
    assert phrases("please wait", 2, frozenset({"slow_tool"})) == {"text": "There it is, after three seconds."}
    assert phrases("please wait", 1, frozenset({"get_time"})) is None


async def test_the_same_words_give_the_same_stream():
    async with serving(demo_agent()) as served:
        one, other = [await say(served, "What is the weather in Oslo?") for _ in range(2)]
        assert (one.types, text(one), results(one)) == (other.types, text(other), results(other))


# --- commands -----------------------------------------------------------------------------------------------------


async def test_tokens_says_so_many_words():
    async with serving(demo_agent(), model_retries=0) as served:
        assert text(await say(served, "/tokens 7")) == "tok " * 7
        assert text(await say(served, "  /tokens  3  1 ")) == "tok " * 3
        nothing = await say(served, "/tokens 0")
        assert (nothing.types[-1], nothing.events[-1]["code"]) == ("RUN_ERROR", "empty_response")


async def test_fail_fails_after_so_many():
    async with serving(demo_agent(), model_retries=0) as served:
        for count in (0, 3):
            answer = await say(served, f"/fail {count}")
            assert text(answer) == "tok " * count
            assert (answer.types[-1], answer.events[-1]["code"]) == ("RUN_ERROR", "provider_error")


async def test_every_key_of_a_script_counts():
    rounds = [
        {"reasoning": "Let me see.", "text": "I look. ", "tool_calls": [call("get_time", tz="+0")], "delay_ms": 1},
        {"text": "cut off here", "finish": "length"},
    ]
    async with serving(demo_agent()) as served:
        answer = await say(served, script(*rounds))
        reasoning = [event["delta"] for event in answer.events if event["type"] == "REASONING_MESSAGE_CONTENT"]
        assert reasoning == ["Let ", "me ", "see."]
        assert called(answer) == ["get_time"]
        assert text(answer) == "I look. cut off here"
        assert answer.types.count("STEP_STARTED") == 2
        assert text(await say(served, script({"tool_calls": [call("get_time", tz="+0")]}))) == "done"
        assert text(await say(served, script())) == "done"
        broken = await say(served, script({"text": "one two three", "fail": 2}))
        assert (text(broken), broken.types[-1]) == ("one two ", "RUN_ERROR")
        nulls = {"text": "fine", "reasoning": None, "tool_calls": None, "fail": None, "finish": None, "delay_ms": None}
        assert text(await say(served, script(nulls))) == "fine"
        filtered = await say(served, script({"text": "one", "finish": "content_filter"}))
        assert filtered.events[-1]["code"] == "content_filter"


NONSENSE = {
    "/script": "empty document",
    "/script {": "cannot be read",
    "/script []": "no list of rounds",
    "/script 5": "no list of rounds",
    "/script {}": "no list of rounds",
    '/script {"rounds": "abc"}': "no list of rounds",
    '/script {"rounds": {"0": {}}}': "no list of rounds",
    '/script {"rounds": ["abc"]}': "round 1: it is no object",
    '/script {"rounds": [{"text": "fine"}, 5]}': "round 2: it is no object",
    '/script {"rounds": [{"text": 5}]}': "round 1: text must be text",
    '/script {"rounds": [{"reasoning": []}]}': "reasoning must be text",
    '/script {"rounds": [{"txt": "a"}]}': "there is no 'txt', only reasoning, text, tool_calls",
    '/script {"rounds": [{"tool_calls": "get_time"}]}': "tool_calls must be a list of",
    '/script {"rounds": [{"tool_calls": [{"arguments": {}}]}]}': "tool_calls must be a list of",
    '/script {"rounds": [{"text": "a", "delay_ms": "long"}]}': "delay_ms must be a number",
    '/script {"rounds": [{"text": "a", "delay_ms": -1}]}': "delay_ms must be a number",
    '/script {"rounds": [{"text": "a", "fail": "soon"}]}': "fail must be a number",
    '/script {"rounds": [{"text": "a", "finish": 1}]}': "finish must be text",
    "/tokens": "Say /tokens N",
    "/tokens many": "Say /tokens N",
    "/tokens -1": "Say /tokens N",
    "/tokens 99999999999999999999": "Say /tokens N",
    "/fail": "Say /fail K",
    "/fail x": "Say /fail K",
    "/scripted": "You said: /scripted",
}


async def test_nonsense_is_answered_kindly():
    async with serving(demo_agent()) as served:
        for words, reply in NONSENSE.items():
            answer = await say(served, words)
            assert answer.types[-1] == "RUN_FINISHED", words
            assert reply in text(answer), words


# --- without anything -----------------------------------------------------------------------------------------------

OFFLINE = """
import asyncio, os, socket
real = socket.socket.connect
def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
        raise AssertionError(f"it calls {address}")
    return real(self, address)
socket.socket.connect = connect
lookup = socket.getaddrinfo
def getaddrinfo(host, *rest, **more):
    if host not in ("127.0.0.1", "localhost", "::1"):
        raise AssertionError(f"it looks up {host}")
    return lookup(host, *rest, **more)
socket.getaddrinfo = getaddrinfo
from agui_bridge.demo import demo_agent
from tests.serving import ask, serving
async def main():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("What is the weather in Oslo?"))
        assert answer.types[-1] == "RUN_FINISHED"
        print("served")
asyncio.run(main())
"""


def test_the_demo_needs_no_key_and_no_network():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
    )
    assert (done.stdout, done.returncode) == ("served\n", 0), done.stderr
