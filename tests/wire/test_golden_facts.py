# ruff: noqa: E501  an event is a line, however long
"""The facts behind a stream, as the journal gives them back, written down."""

from __future__ import annotations

from inline_snapshot import snapshot

from tests.wire.golden import golden_facts
from tests.wire.scenes import SCENES, staged


async def facts_of(name: str) -> str:
    """The journal of the scene's first run."""
    async with staged(name) as served:
        answer = await served.run(SCENES[name].asked[0]([]))
        facts = await served.get(answer.headers["location"] + "/events")
    return golden_facts(facts.events)


async def test_the_facts_of_a_plain_answer() -> None:
    assert await facts_of("plain answer") == snapshot("""\
1 run.started {"client_run_id":"r1","agent_id":"assistant","snapshots":[]}
2 message.completed {"message_id":"u1","role":"user","content":"Hi"}
3 message.started {"message_id":"m1","role":"assistant"}
4 round.started {"round":1,"model":"scripted-provider","provider":"testing"}
5 message.delta {"message_id":"m1","part_id":"p0","content_index":0,"delta":"Let "}
6 message.delta {"message_id":"m1","part_id":"p0","content_index":0,"delta":"me "}
7 message.delta {"message_id":"m1","part_id":"p0","content_index":0,"delta":"think"}
8 round.completed {"round":1,"runtime_role":"final_response","finish":"stop","parts":[{"part_id":"p0","kind":"text"}],"tool_call_ids":[],"attempts":1,"usage":{"provider":"testing","model":"scripted-provider","input_tokens":3,"output_tokens":2}}
9 message.completed {"message_id":"m1","role":"assistant","content":[{"part_id":"p0","kind":"text","round":1,"committed":true,"text":"Let me think"}]}
10 run.completed {"message_id":"m1","usage":[{"provider":"testing","model":"scripted-provider","input_tokens":3,"output_tokens":2}]}\
""")


async def test_the_facts_of_a_tool_between_two_texts() -> None:
    assert await facts_of("text, tool, text") == snapshot("""\
1 run.started {"client_run_id":"r1","agent_id":"assistant","snapshots":[]}
2 message.completed {"message_id":"u1","role":"user","content":"Hi"}
3 message.started {"message_id":"m1","role":"assistant"}
4 round.started {"round":1,"model":"scripted-provider","provider":"testing"}
5 message.delta {"message_id":"m1","part_id":"p0","content_index":0,"delta":"Looking. "}
6 tool.call.started {"message_id":"m1","part_id":"p1","content_index":1,"tool_call_id":"c1","tool_name":"lookup"}
7 tool.call.delta {"tool_call_id":"c1","delta":"{\\"key\\":\\"tea\\"}"}
8 tool.call.committed {"tool_call_id":"c1","tool_name":"lookup","arguments_json":"{\\"key\\":\\"tea\\"}","target":"server","malformed":false}
9 round.completed {"round":1,"runtime_role":"working_message","finish":"tool_calls","parts":[{"part_id":"p0","kind":"text"},{"part_id":"p1","kind":"tool_call"}],"tool_call_ids":["c1"],"attempts":1}
10 tool.execution.started {"tool_call_id":"c1","tool_name":"lookup"}
11 tool.call.completed {"tool_call_id":"c1","tool_name":"lookup","result":"tea is 42","is_error":false,"kind":"result"}
12 round.started {"round":2,"model":"scripted-provider","provider":"testing"}
13 message.delta {"message_id":"m1","part_id":"p2","content_index":2,"delta":"It "}
14 message.delta {"message_id":"m1","part_id":"p2","content_index":2,"delta":"is "}
15 message.delta {"message_id":"m1","part_id":"p2","content_index":2,"delta":"42"}
16 round.completed {"round":2,"runtime_role":"final_response","finish":"stop","parts":[{"part_id":"p2","kind":"text"}],"tool_call_ids":[],"attempts":1}
17 message.completed {"message_id":"m1","role":"assistant","content":[{"part_id":"p0","kind":"text","round":1,"committed":true,"text":"Looking. "},{"part_id":"p1","kind":"tool_call","round":1,"committed":true,"tool_call_id":"c1"},{"part_id":"p2","kind":"text","round":2,"committed":true,"text":"It is 42"}]}
18 run.completed {"message_id":"m1"}\
""")


async def test_the_facts_of_a_round_whose_call_was_cut() -> None:
    assert await facts_of("arguments cut by length") == snapshot("""\
1 run.started {"client_run_id":"r1","agent_id":"assistant","snapshots":[]}
2 message.completed {"message_id":"u1","role":"user","content":"Hi"}
3 message.started {"message_id":"m1","role":"assistant"}
4 round.started {"round":1,"model":"scripted-provider","provider":"testing"}
5 message.delta {"message_id":"m1","part_id":"p0","content_index":0,"delta":"Writing. "}
6 tool.call.started {"message_id":"m1","part_id":"p1","content_index":1,"tool_call_id":"c1","tool_name":"lookup"}
7 tool.call.delta {"tool_call_id":"c1","delta":"{\\"key"}
8 tool.call.delta {"tool_call_id":"c1","delta":"\\": \\"te"}
9 message.completed {"message_id":"m1","role":"assistant","content":[{"part_id":"p0","kind":"text","round":1,"committed":false,"text":"Writing. "},{"part_id":"p1","kind":"tool_call","round":1,"committed":false,"tool_call_id":"c1"}]}
10 run.failed {"error":{"code":"output_truncated","message":"The answer was cut by its length limit within a tool call.","retryable":false},"usage":[{"provider":"testing","model":"scripted-provider","input_tokens":3,"output_tokens":2}]}\
""")
