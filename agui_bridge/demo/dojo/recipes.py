"""Agents that write a recipe together with the page: both change it."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from agui_bridge import Agent, BeforeRound, ChangeRequest, ToolContext, before_round, tool
from agui_bridge.demo.dojo.shown_state import shown

_COOK: Final = (
    "You improve the recipe that the user sees and edits. Show what you make of it with {tool}, once. Keep the "
    "ingredients and instructions that are there and add what is missing, but replace what does not fit the special "
    "preferences. Then say in one sentence what you changed."
)

SkillLevel = Literal["Beginner", "Intermediate", "Advanced"]
CookingTime = Literal["5 min", "15 min", "30 min", "45 min", "60+ min"]


class Ingredient(BaseModel):
    """Something that goes into it."""

    icon: str = Field(description="An emoji, such as 🥕.")
    name: str
    amount: str


class Recipe(BaseModel):
    """A whole recipe."""

    title: str = ""
    skill_level: SkillLevel
    cooking_time: CookingTime
    special_preferences: list[str] = Field(default=[], description="Such as Vegan, Spicy or High Protein.")
    ingredients: list[Ingredient] = Field(description="All ingredients, old and new.")
    instructions: list[str] = Field(description="All steps, old and new.")
    changes: str = Field(default="", description="What is different now.")


def _put(ctx: ToolContext, recipe: dict[str, Any]) -> str:
    before: dict[str, Any] = ctx.state.get("recipe") or {}
    ctx.state["recipe"] = {**before, **{name: value for name, value in recipe.items() if value != ""}}
    return "The recipe is updated."


@tool(predict_state={"recipe": "recipe"})
async def generate_recipe(ctx: ToolContext, recipe: Recipe) -> str:
    """Show a new version of the recipe to the user.

    Args:
        recipe: All of it.
    """
    return _put(ctx, recipe.model_dump())


@tool
async def display_recipe(
    ctx: ToolContext,
    skill_level: SkillLevel,
    cooking_time: CookingTime,
    ingredients: list[Ingredient],
    instructions: list[str],
    special_preferences: list[str] | None = None,
) -> str:
    """Show a new version of the recipe to the user.

    Args:
        skill_level: How well one has to cook.
        cooking_time: How long it takes.
        ingredients: All ingredients, old and new.
        instructions: All steps, old and new.
        special_preferences: Such as Vegan, Spicy or High Protein.
    """
    recipe = Recipe(
        skill_level=skill_level,
        cooking_time=cooking_time,
        special_preferences=special_preferences or [],
        ingredients=ingredients,
        instructions=instructions,
    )
    return _put(ctx, recipe.model_dump())


@before_round
def show_recipe(asked: BeforeRound) -> ChangeRequest:
    """The model sees the recipe as it is now, with what the user has made of it."""
    return shown(asked, "recipe")


shared_state = Agent(
    "shared_state",
    instructions=_COOK.format(tool="generate_recipe"),
    description="Writes a recipe together with the user.",
    tools=[generate_recipe],
    hooks=[show_recipe],
)

shared_state_pydantic = Agent(
    "shared_state",
    instructions=_COOK.format(tool="display_recipe"),
    description="Writes a recipe together with the user.",
    tools=[display_recipe],
    hooks=[show_recipe],
)
