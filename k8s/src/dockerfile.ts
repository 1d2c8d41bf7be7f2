/** An instruction of a Dockerfile, its lines joined. */
export interface Instruction {
  /** In capitals. */
  readonly name: string;
  readonly rest: string;
}

interface Stage {
  /** Of `AS`; the last stage may have none. */
  readonly name: string | null;
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

/** The part of the syntax that our Dockerfile uses. */
export interface Dockerfile {
  /** Arguments before the first stage, with their defaults. */
  readonly globals: ReadonlyMap<string, string>;
  readonly stages: readonly Stage[];
}

/** Parses a Dockerfile. Throws when another instruction than ARG is before the first stage. */
export function parseDockerfile(text: string): Dockerfile {
  const globals = new Map<string, string>();
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const instruction of instructionsOf(text)) {
    if (instruction.name === "FROM") {
      const [base = "", , name = null] = instruction.rest.split(/\s+/);
      stages.push({ name, base: withVariables(base, Object.fromEntries(globals)), instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage !== undefined) stage.instructions.push(instruction);
    else if (instruction.name === "ARG") globals.set(...assignment(instruction.rest));
    else throw new Error(`${instruction.name} stands before the first stage`);
  }
  return { globals, stages };
}

/** `NAME=value` or `NAME` alone. */
export function assignment(text: string): [string, string] {
  const at = text.indexOf("=");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** `$NAME` and `${NAME}` are replaced; an unknown variable is empty. */
export function withVariables(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced?: string, bare?: string) => {
    return variables[braced ?? bare ?? ""] ?? "";
  });
}

function instructionsOf(text: string): Instruction[] {
  const lines = text.split("\n").filter((line) => !/^\s*#/.test(line));
  return lines
    .join("\n")
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, name = "", rest = ""] = /^(\S+)\s+(.*)$/.exec(line.trim()) ?? [];
      return { name: name.toUpperCase(), rest };
    });
}
