"""The nursery: begins child runs among the runs at work in this process, and knows which agents there are for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runtime.agent import Agent
from runtime.beginning import opening_of
from runtime.children import Asked, ChildAtWork, Order
from runtime.errors import ConfigurationError, NotFound, StoreError
from runtime.executors.no_model import NoModel
from runtime.journal import Started
from runtime.journal.store import Store
from runtime.live_runs import LiveRuns, Performer
from runtime.run import RunRecord
from runtime.system import Clock
from runtime.tools.toolbox import ApproverPolicy

PerformWith = Callable[[Agent], Performer]
"""Finds the model of an agent that is served under no name. Raises ConfigurationError."""


class ProcessNursery:
    """The `Nursery` of one process. `performers` are the agents that are served, by name."""

    def __init__(
        self,
        live: LiveRuns,
        store: Store,
        performers: Mapping[str, Performer],
        perform_with: PerformWith | None,
        *,
        clock: Clock,
        instance_id: str,
        lease_s: float,
    ) -> None:
        self._live = live
        self._store = store
        self._performers = performers
        self._perform_with = perform_with or _as_made
        self._clock = clock
        self._instance_id = instance_id
        self._lease_s = lease_s
        self.unnamed: list[Performer] = []
        """The agents that were asked and are served under no name."""

    def asked(self, agent: Agent | str) -> Asked:
        """See the port."""
        agent_id, performer = self._find(agent)
        found = performer.agent
        return Asked(agent_id, found.name, found.description, found.output_type is not None)

    async def begin(self, order: Order) -> ChildAtWork:
        """See the port."""
        _, performer = self._find(order.agent)
        opening = opening_of(
            order.request,
            None,
            order.thread,
            performer.agent.snapshot(performer.model),
            run_id=order.run_id,
            executor_instance_id=self._instance_id,
            now=self._clock.now(),
            lease_s=self._lease_s,
        )
        with self._live.beginning(order.run_id, order.request.root_run_id):
            begun = await self._store.begin_run(opening)
            if not isinstance(begun, Started):
                raise StoreError(f"The child run could not begin: {type(begun).__name__}.")
            live = self._live.launch(
                begun.run, begun.records, order.request, performer, order.thread, lineage=order.lineage
            )
            assert live is not None, "a child has a model to ask"
            return live

    def approvers(self, agent_id: str, tool_name: str | None) -> ApproverPolicy | None:
        """Who may answer what this tool of an agent asks; None: whoever may use the session."""
        unnamed = (performer for performer in self.unnamed if performer.agent.name == agent_id)
        performer = self._performers.get(agent_id) or next(unnamed, None)
        tool = None if performer is None or tool_name is None else performer.agent.toolbox.get(tool_name)
        return None if tool is None else tool.approvers

    def agents(self) -> dict[str, Agent]:
        """All agents that are known here, by the id of their runs."""
        unnamed = {each.agent.name: each.agent for each in self.unnamed}
        return unnamed | {name: each.agent for name, each in self._performers.items()}

    @property
    def has_approvers(self) -> bool:
        """Whether any tool of an agent that is known here says who may answer what it asks."""
        known = [*self._performers.values(), *self.unnamed]
        return any(tool.approvers is not None for each in known for tool in each.agent.toolbox)

    async def ended(self, run_id: str) -> RunRecord | None:
        """See the port."""
        return await self._store.find_run(run_id)

    def _find(self, agent: Agent | str) -> tuple[str, Performer]:
        if isinstance(agent, str):
            if (performer := self._performers.get(agent)) is None:
                raise NotFound(f"There is no agent {agent!r}.")
            return agent, performer
        for name, performer in self._performers.items():
            if performer.agent is agent:
                return name, performer
        for performer in self.unnamed:
            if performer.agent is agent:
                return agent.name, performer
        self.unnamed.append(self._perform_with(agent))
        return agent.name, self.unnamed[-1]


def _as_made(agent: Agent) -> Performer:
    if agent.performer is not None:
        return Performer(agent, NoModel(agent.name, agent.performer.kind))
    if agent.model is None or isinstance(agent.model, str):
        raise ConfigurationError(f"The agent {agent.name!r} has no model that was made.")
    return Performer(agent, agent.model)
