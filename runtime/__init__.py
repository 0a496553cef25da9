"""A stateful session runtime for agents: facts are committed to a journal before anybody sees them.

It knows nothing of AG-UI or HTTP. Modules directly in this package are pure unless they say what they wait for;
folders hold siblings (dialects, tools) or what waits for a store (journal).
"""
