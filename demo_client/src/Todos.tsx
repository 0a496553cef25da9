interface Todo {
  text: string;
  done: boolean;
}

interface Props {
  state: unknown;
  onChange(state: Record<string, unknown>): void;
}

/** The list that page and agent share. What is changed here travels with the next run. */
export function Todos({ state, onChange }: Props) {
  const whole = typeof state === "object" && state !== null ? (state as Record<string, unknown>) : {};
  const todos = Array.isArray(whole.todos) ? (whole.todos as Todo[]) : [];
  if (todos.length === 0) return null;
  const change = (changed: Todo[]) => onChange({ ...whole, todos: changed });
  return (
    <section className="todos" aria-label="To do">
      <h2>To do</h2>
      <ul>
        {todos.map((todo, place) => (
          <li key={place}>
            <label>
              <input
                type="checkbox"
                checked={todo.done}
                onChange={() => change(todos.map((one, at) => (at === place ? { ...one, done: !one.done } : one)))}
              />
              {todo.text}
            </label>
          </li>
        ))}
      </ul>
    </section>
  );
}
