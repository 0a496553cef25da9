"""An agent that has a crew work for it, and one that always fails."""

from __future__ import annotations

from agui_bridge import Agent, Failed, RunContext, ToolContext, tool

_ANSWER = "Final Answer:"

_crew = Agent(
    "General Assistant",
    instructions="You are a general assistant. Your personal goal is to help the user with the request that you are "
    f"given. Write down what you think, then `{_ANSWER}` and the result, complete and ready to be used.",
    description="Does what it is asked to, without asking back.",
)


@tool(name="CrewChatCrew", delegates_to=_crew)
async def crew_chat_crew(ctx: ToolContext, user_message: str) -> str:
    """Have the crew work on a request.

    Args:
        user_message: The request, with all that the crew has to know.
    """
    said = str(await ctx.delegate(_crew, user_message))
    return said.rpartition(_ANSWER)[2].strip()


@tool
def crew_exit() -> str:
    """Send the crew home, when the user says goodbye to it."""
    return "Crew exited"


crew_chat = Agent(
    "crew_chat",
    instructions="You speak for a crew. Talk with the user yourself; have real work done with CrewChatCrew, and tell "
    "what came of it. When the user says goodbye to the crew, call crew_exit, and then say goodbye, too.",
    description="Has a crew work for it.",
    tools=[crew_chat_crew, crew_exit],
)


async def _fail(ctx: RunContext):
    """It fails, and says no more than that."""
    message = f"CrewAI flow failed (run {ctx.run.run_id}); the server's log says why."
    yield Failed(message, code="AGUI_CREWAI_FLOW_ERROR_RUNTIMEERROR")


error_flow = Agent("error_flow", executor=_fail, description="Always fails.")
